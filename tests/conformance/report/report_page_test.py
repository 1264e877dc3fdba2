"""The page of `bubblesim report` in a headless Chromium, from a file, without network.

report_page_test.py FIXTURE: the program that writes the pages. Exit code 77: no browser.
"""

import json
import os
from urllib.parse import quote

from browser import BACKGROUND, By, Keys, PATIENCE_S, Page, Select, UNNAMED, WebDriverWait, main

SHOWN = """
return [...document.querySelectorAll('#points tbody tr')].map(row =>
  [...row.children].map(cell => cell.textContent));
"""


class ReportPage(Page):
    def field(self, name):
        """The select that a label of this text holds."""
        for label in self.driver.find_elements(By.CSS_SELECTOR, "label.field"):
            if label.find_element(By.TAG_NAME, "span").text == name:
                return Select(label.find_element(By.TAG_NAME, "select"))
        raise AssertionError("found no field " + name)

    def column(self, table, name):
        return self.find('#%s th[data-column="%s"]' % (table, name))

    def shown(self):
        return self.script(SHOWN)

    def test_opens_from_a_file_and_asks_for_nothing_else(self):
        self.open()
        self.assertEqual(self.asked(), [])
        self.assertEqual(self.driver.get_log("browser"), [])

    def test_texts_of_the_store_stay_texts(self):
        self.open()
        self.assertIsNone(self.script("return window.broken || null"))
        self.assertEqual(self.script("return document.querySelectorAll('img').length"), 0)
        self.assertIn("</script>", self.find("h1").text)
        self.assertIn("</script>", self.find("#failures tbody").text)

    def test_shows_warnings_failures_and_counters(self):
        self.open()
        self.assertIn("run_cut", self.find("#warnings").text)
        self.assertIn("no such file", self.find("#failures").text)
        self.assertIn("sizes_guessed", self.find("#counters").text)
        self.assertIn("1 failed", self.find("#summary").text)

    def test_figures_of_lossy_inputs_are_marked_wherever_they_stand(self):
        self.open()
        # Of the seeds of tgs at load 100 one has lost something: its point is marked, no other.
        self.assertEqual([row[:2] for row in self.shown() if "!" in row[0]], [["tgs !", "100"]])
        for part in ("points", "comparisons", "trade", "curves", "bubbles"):
            self.assertIn("program_delays_unexplained", self.find("#%s .note" % part).text, part)
        against = self.script("return [...document.querySelectorAll('#comparisons tbody th')]"
                              ".map(cell => cell.textContent)")
        self.assertEqual({name for name in against if "!" in name}, {"tgs !"})
        self.field("rate per s").select_by_visible_text("200")
        self.assertNotIn("!", self.find("#points .note").text)

    def test_tables_sort_by_click_and_by_keyboard(self):
        self.open()
        self.column("points", "latency_p95_ms").find_element(By.TAG_NAME, "button").click()
        head = self.column("points", "latency_p95_ms")
        self.assertEqual(head.get_attribute("aria-sort"), "descending")
        self.assertEqual(self.shown()[0][:2], ["exclusive", "200"])
        focused = self.driver.switch_to.active_element
        focused.send_keys(Keys.ENTER)
        head = self.column("points", "latency_p95_ms")
        self.assertEqual(head.get_attribute("aria-sort"), "ascending")
        self.assertEqual(self.shown()[0][:2], ["ideal (oracle)", "50"])
        self.assertIn("ascending", self.find("#status").get_attribute("textContent"))

    def test_means_over_seeds_have_intervals(self):
        self.open()
        # mps at load 50: 20 ms x (1.125 + 0.01 seed): 22.9; 4.303 x 0.2 / sqrt(3) = 0.497.
        row = [line for line in self.shown() if line[:2] == ["mps", "50"]][0]
        self.assertIn("22.90 \u00b1 0.50", row)
        self.assertEqual(row[-1], "3")

    def test_filters_by_settings_policies_and_sweep(self):
        self.open()
        self.assertEqual(len(self.shown()), 12)
        self.field("rate per s").select_by_visible_text("100")
        self.assertEqual(len(self.shown()), 4)
        self.find(".policies label").click()  # exclusive
        self.assertEqual([row[0] for row in self.shown()], ["mps", "tgs !", "ideal (oracle)"])
        self.field("Sweep").select_by_visible_text("with devices")
        self.assertEqual([row[1] for row in self.shown()], ["a100", "h100", "a100", "h100"])
        self.assertFalse(self.find("#curves").is_displayed())

    def test_the_address_holds_what_is_chosen(self):
        self.open()
        self.field("rate per s").select_by_visible_text("100")
        self.find(".policies label").click()
        self.column("points", "latency_p95_ms").find_element(By.TAG_NAME, "button").click()
        address = self.script("return location.hash")
        wanted = self.shown()
        self.open(choice=address)
        self.assertEqual(self.shown(), wanted)
        self.assertEqual(self.column("points", "latency_p95_ms").get_attribute("aria-sort"),
                         "descending")

    def test_an_address_that_fits_nothing_does_no_harm(self):
        self.open(choice="#sweep=%s&trade=99&axis=/x&metric=y&point=z:1&hide=q&sort.points=a:b"
                  % quote("</script>"))
        self.assertEqual(len(self.shown()), 12)
        self.assertEqual(self.driver.get_log("browser"), [])

    def test_points_are_reached_and_explained_by_keyboard(self):
        self.open()
        plot = self.find("#trade .plot")
        plot.send_keys(Keys.HOME)
        first = self.find("#status").get_attribute("textContent")
        self.assertIn("exclusive", first)
        plot.send_keys(Keys.ARROW_DOWN)
        self.assertIn("mps", self.find("#status").get_attribute("textContent"))
        plot.send_keys(Keys.ENTER)
        detail = self.find("#detail")
        self.assertEqual(self.driver.switch_to.active_element, detail)
        for text in ("mps", "0.1.0", "/fillers/0/arrivals/rate_per_s", "3 seeds"):
            self.assertIn(text, detail.get_attribute("textContent"))
        run = detail.find_element(By.CSS_SELECTOR, "details.run > summary")
        run.send_keys(Keys.ENTER)
        self.assertIn("2023-11-14 22:13:20 UTC", detail.text)
        detail.find_element(By.XPATH, ".//summary[text()='Config of the run']").send_keys(
            Keys.ENTER)
        WebDriverWait(self.driver, PATIENCE_S).until(
            lambda _: detail.find_elements(By.TAG_NAME, "pre"))
        config = json.loads(detail.find_element(By.TAG_NAME, "pre").text)
        self.assertEqual(config["policies"], ["mps"])
        detail.send_keys(Keys.ESCAPE)
        self.assertEqual(self.driver.switch_to.active_element, plot)

    def test_fits_desktops_and_phones(self):
        for page in ("small", "large"):
            for width in (1280, 390):
                self.open(page, width=width)
                self.assertLessEqual(
                    self.script("return document.documentElement.scrollWidth"), width, page)
                for svg in self.driver.find_elements(By.CSS_SELECTOR, ".plot svg"):
                    self.assertLessEqual(svg.size["width"], width)

    def test_what_is_reached_has_a_name(self):
        self.open()
        self.script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        self.assertEqual(self.script(UNNAMED), [])
        charts = self.driver.find_elements(By.CSS_SELECTOR, "svg[role=img]")
        self.assertEqual(len(charts), 4)  # trade, curves, bubbles, a timeline
        for chart in charts:
            self.assertTrue(chart.find_element(By.TAG_NAME, "desc").get_attribute("textContent"))
        tables = self.driver.find_elements(By.CSS_SELECTOR, "#figures > section details")
        self.assertGreaterEqual(len(tables), 4)

    def test_is_dark_where_the_reader_prefers_it(self):
        self.open()
        light = self.script(BACKGROUND)
        self.prefer_dark()
        dark = self.script(BACKGROUND)
        self.assertEqual(light, "rgb(255, 255, 255)")
        self.assertLess(sum(int(n) for n in dark[4:-1].split(",")), 150)

    def test_five_thousand_runs_stay_small(self):
        self.assertLess(os.path.getsize(os.path.join(self.folder, "large.html")), 10 * 2 ** 20)
        self.open("large")
        self.assertIn("5000 runs done", self.find("#summary").text.replace("\u202f", ""))
        self.assertEqual(self.driver.get_log("browser"), [])


if __name__ == "__main__":
    main(ReportPage)
