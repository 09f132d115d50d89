"""The local AWS: MiniStack, started on loopback with AWS's rules put back where it bends them.

`python -m local.emulator --port N` starts it; `local.emulator.mends` lists what is put back and
why; `docs/fidelity.md` says what remains different.
"""
