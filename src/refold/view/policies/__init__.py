"""The policies: pure rules that read a desk and propose edits.

One file each; none knows another.
"""
