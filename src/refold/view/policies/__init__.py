"""The policies: pure rules that read a board and propose edits.

One file each; none knows another.
"""
