"""A real browser, and stores of both kinds, for the tests of the console."""

import os
import shutil
from contextlib import asynccontextmanager

import pytest
from needed import need

PATIENCE = 120_000
"""Milliseconds that a browser has for each step: the machine may be busy."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@asynccontextmanager
async def launched(*arguments):
    """Chromium without a window; where it or Playwright is missing, the test is skipped."""
    try:
        from playwright.async_api import async_playwright  # noqa: PLC0415 - may be missing
    except ImportError:
        need(None, "Playwright is not installed", "REFOLD_BROWSER")
    need(CHROMIUM, "Chromium is not installed", "REFOLD_BROWSER")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*arguments, *as_root], timeout=PATIENCE
        )
        plain = browser.new_context

        async def patient(**how):
            context = await plain(**how)
            context.set_default_timeout(PATIENCE)
            return context

        browser.new_context = patient
        yield browser
        await browser.close()


@pytest.fixture
async def chromium():
    async with launched() as browser:
        yield browser


@pytest.fixture
async def rebound_chromium():
    """A browser for which the name of another site is an address of this machine."""
    async with launched("--host-resolver-rules=MAP evil.example 127.0.0.1") as browser:
        yield browser


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    """Where a store is, of each kind."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_address")
    return f"sqlite:///{tmp_path / 's.db'}"
