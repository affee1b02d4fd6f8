"""The benchmarks: ours and others' ways of doing the same, side by side.

Run them on a quiet machine with ``python -m pytest tests/bench``; a run that does not name this folder, or a file in
it, leaves them out. A missed target fails its test. They need the extra ``[bench]``, and jq for one row.
"""
