"""Audits a report that somebody else wrote: opens what it cites, once, and judges each sentence.

`pairing` cuts a text into sentences and finds what each cites, by the lists of `references`; `run`
opens the pages, judges, and asks a model about the rest; `results` holds what it found, `writers`
give text, JSON, SARIF and a page. The package is not called `audit`, because that is the
name of the public function.

Others may import: results, run, writers.
"""
