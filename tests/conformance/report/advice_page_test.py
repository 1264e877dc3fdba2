"""The pages of `bubblesim advise` in a headless Chromium, from files, without network.

advice_page_test.py FIXTURE: the program that writes the pages. Exit code 77: no browser.
"""

from browser import BACKGROUND, Keys, Page, UNNAMED, main

# Where marks and limits are drawn: the shapes' own coordinates.
LIMITS = """
return [...document.querySelectorAll('.plot svg')].map(svg => {
  const line = svg.querySelector('line.limit');
  return line ? Number(line.getAttribute('x1')) : null;
});
"""
ROWS = """
return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(row =>
  [...row.children].map(cell => cell.textContent));
"""


class AdvicePage(Page):
    def rows(self, selector):
        return self.script(ROWS, selector)

    def plots(self):
        return self.driver.find_elements("css selector", ".plot")

    def status(self):
        return self.find("#status").get_attribute("textContent")

    def test_opens_from_a_file_and_asks_for_nothing_else(self):
        for page in ("small", "fleet"):
            self.open(page)
            self.assertEqual(self.asked(), [])
            self.assertEqual(self.driver.get_log("browser"), [])

    def test_texts_stay_texts(self):
        for page in ("small", "fleet"):
            self.open(page)
            self.assertIsNone(self.script("return window.broken || null"))
            self.assertEqual(self.script("return document.querySelectorAll('img').length"), 0)
            self.assertIn("</script>", self.find("main").text)

    def test_the_answer_stands_before_its_figures(self):
        self.open()
        text = self.find(".answer").text
        self.assertIn("12 ms an iteration alone on 4 x NVIDIA A100", text)
        self.assertIn("Run b share=4", text)
        self.assertIn("costs", text)
        self.assertIn("keeps 0.9600, limit 0.95", text)
        self.assertIn("40 ms, limit 50 ms: 20 % of it left", text)
        self.assertIn("bubblesim run on.json", [code.text for code in self.driver.find_elements(
            "css selector", ".answer code")])

    def test_limits_are_lines_and_the_front_is_drawn(self):
        self.open()
        # Trade and latency of the service, trade of the offline work.
        self.assertEqual(len(self.plots()), 3)
        limits = self.script(LIMITS)
        self.assertEqual([limit is not None for limit in limits], [True, True, True])
        fronts = self.script("return [...document.querySelectorAll('.plot svg')]"
                             ".map(svg => svg.querySelectorAll('.front').length)")
        self.assertEqual(fronts, [1, 0, 1])

    def test_the_latency_is_the_colour(self):
        self.open()
        trade = self.plots()[0]
        classes = {part for path in trade.find_elements("css selector", "path.solid")
                   for part in path.get_attribute("class").split()}
        # Quarters of 50 ms: 10 ms; 20; 30; 40 and 50; and what is beyond.
        self.assertLessEqual({"q0", "q1", "q2", "q3", "qx"}, classes)
        colours = self.script("return ['q0', 'q3', 'qx'].map(name => getComputedStyle("
                              "document.querySelector('.plot .solid.' + name)).fill)")
        self.assertEqual(len(set(colours)), 3)

    def test_keys_reach_every_setting_and_choose_one(self):
        self.open()
        plot = self.plots()[0]
        plot.send_keys(Keys.HOME)
        self.assertIn("a share=1", self.status())
        plot.send_keys(Keys.ARROW_DOWN)
        self.assertIn("b share=", self.status())
        for _ in range(3):
            plot.send_keys(Keys.ARROW_RIGHT)
        self.assertIn("b share=4", self.status())
        self.assertIn("recommended", self.status())
        plot.send_keys(Keys.ENTER)
        chosen = self.find(".chosen-setting").text
        self.assertIn('{"name":"b","parameters":{"share":4}}', chosen)

    def test_the_table_has_every_setting_and_sorts(self):
        self.open()
        rows = self.rows("section:first-child")
        self.assertEqual(len(rows), 21)
        self.find('th[data-column="gain"] button').click()
        self.assertEqual(self.rows("section:first-child")[0][2], "0.7000")
        self.driver.switch_to.active_element.send_keys(Keys.ENTER)
        self.assertEqual(self.rows("section:first-child")[0][2], "0.1000")
        self.assertIn("ascending", self.status())
        front = [row[0] for row in self.rows("section:first-child") if "on the front" in row[-1]]
        self.assertEqual({name.split()[0] for name in front}, {"b"})

    def test_a_fleet_shows_kinds_works_and_jobs(self):
        self.open("fleet")
        # 200 h x 3600 requests at 1/s a GPU: 200 GPU-hours at 0.5; the other 1,336 at 0.25.
        works = self.rows("#works")
        self.assertEqual([works[0][0], works[0][1]], ["first", "100.00"])
        self.assertEqual([works[1][0], works[1][1]], ["second", "334.00"])
        jobs = self.rows("#jobs")
        self.assertEqual([row[3] for row in jobs], ["first", "second"])
        self.assertEqual(len(self.rows("#kinds")), 4)
        self.assertIn("434.0 of 1584.0 GPU-hours a day gained", self.find("#summary").text)
        self.find(".plot").send_keys(Keys.HOME)
        self.assertIn("big with first", self.status())

    def test_what_is_reached_has_a_name(self):
        for page in ("small", "fleet"):
            self.open(page)
            self.assertEqual(self.script(UNNAMED), [])

    def test_fits_desktops_and_phones(self):
        for page in ("small", "fleet", "large"):
            for width in (1280, 390):
                self.open(page, width=width)
                self.assertLessEqual(
                    self.script("return document.documentElement.scrollWidth"), width, page)
                for plot in self.plots():
                    self.assertLessEqual(
                        plot.find_element("css selector", "svg").size["width"], width)

    def test_is_dark_where_the_reader_prefers_it(self):
        for page in ("small", "fleet"):
            self.open(page)
            self.assertEqual(self.script(BACKGROUND), "rgb(255, 255, 255)")
            self.prefer_dark()
            dark = self.script(BACKGROUND)
            self.assertLess(sum(int(n) for n in dark[4:-1].split(",")), 150)
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def test_thousands_of_settings_are_few_elements(self):
        self.open("large")
        self.assertLess(self.script("return document.querySelectorAll('*').length"), 3000)
        self.assertEqual(self.driver.get_log("browser"), [])


if __name__ == "__main__":
    main(AdvicePage)
