"""`searchloop library`: folders that can be searched without a network."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from agent.settings import Settings
from cli.main import OK
from cli.text import one_line
