"""The guard: decides whether a tool call may run and what may leave the machine.

Others may import: approvals, egress, guard.
"""
