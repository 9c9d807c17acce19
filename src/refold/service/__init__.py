"""The multi-tenant HTTP service: gateway, API and worker in one process, and who may use them."""
