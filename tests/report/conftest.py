from browsing import browser, browser_page  # noqa: F401
