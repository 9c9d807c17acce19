"""The policies: pure rules that read a plan builder and propose edits."""
