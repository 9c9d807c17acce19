"""`refold chat`: a conversation in the terminal, with its memory in sight.

    command ─▶ chat ─▶ conversation ─▶ agent with its memory
                │ ▲
                ▼ │
              surface: a terminal, or plain lines

What a person types goes from the surface to the chat, which runs a command or a turn; what the
turn gives to hear goes back to the surface.
"""
