"""The console: pages that show what models saw of a session, over the functions of the API."""
