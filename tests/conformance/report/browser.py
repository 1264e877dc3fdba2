"""A headless Chromium for the tests of pages, from files, without network.

Needs Debian's chromium, chromium-driver and python3-selenium; main() exits with 77 without them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    webdriver = By = Keys = Select = WebDriverWait = None

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
PATIENCE_S = 60

# Names of what may be focused and of charts, as a browser computes them for screen readers.
UNNAMED = """
return [...document.querySelectorAll('button, select, input, [tabindex="0"], svg[role=img]')]
  .filter(node => node.getClientRects().length > 0)
  .filter(node => !(node.getAttribute('aria-label') || node.textContent.trim() ||
    (node.labels && node.labels.length > 0 && node.labels[0].textContent.trim())))
  .map(node => node.outerHTML.slice(0, 120));
"""
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


def chrome(folder):
    options = Options()
    options.binary_location = CHROMIUM
    arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                 "--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + folder,
                 "--no-first-run", "--disable-background-networking", "--disable-sync",
                 "--disable-component-update"]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    for argument in arguments:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    driver.set_page_load_timeout(PATIENCE_S)
    return driver


class Page(unittest.TestCase):
    """Pages that a fixture, a program, writes into a folder."""

    fixture = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="report_page_")
        cls.addClassCleanup(shutil.rmtree, cls.folder, True)
        subprocess.run([cls.fixture, cls.folder], check=True, timeout=120)
        cls.driver = chrome(os.path.join(cls.folder, "profile"))
        cls.addClassCleanup(cls.driver.quit)

    def open(self, page="small", choice="", width=1280):
        self.size(width)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.address = "file://%s/%s.html" % (self.folder, page)
        self.driver.get(self.address + choice)
        WebDriverWait(self.driver, PATIENCE_S).until(lambda driver: self.script(
            "return document.documentElement.dataset.ready") == "yes")

    def size(self, width):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})

    def tearDown(self):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def asked(self):
        """What the page asked a network for, but for itself."""
        urls = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return [url for url in urls if url.split("#")[0] != self.address]

    def prefer_dark(self):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark"}]})


def main(case):
    """Runs the tests of a class with the fixture that the first argument names."""
    if webdriver is None or CHROMIUM is None or DRIVER is None:
        print("skipped: needs Debian's chromium, chromium-driver and python3-selenium")
        sys.exit(77)
    case.fixture = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=1)
