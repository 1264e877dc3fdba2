"""The page of `bubblesim view` in a headless Chromium, from a file, without network.

view_page_test.py FIXTURE: the program that writes the pages. Exit code 77: no browser.
"""

import os

from browser import BACKGROUND, Keys, PATIENCE_S, Page, UNNAMED, WebDriverWait, main

OPENS_WITHIN_MS = 2000  # on a machine of two cores, from the request to the drawn timeline
STROKES = "return document.querySelectorAll('.timeline path.stroke').length"
DRAWN_BYTES = """
return [...document.querySelectorAll('.timeline path.stroke')]
  .reduce((sum, path) => sum + path.getAttribute('d').length, 0);
"""
WHEEL = """
const box = document.querySelector('.timeline svg').getBoundingClientRect();
document.querySelector('.timeline').dispatchEvent(new WheelEvent('wheel', {
  deltaY: arguments[0], clientX: box.right - 20, clientY: box.top + 40, cancelable: true }));
"""
POINT = """
const box = document.querySelector('.timeline svg').getBoundingClientRect();
const lane = document.querySelectorAll('.timeline rect.ground')[arguments[0]];
const place = lane.getBoundingClientRect();
document.querySelector('.timeline').dispatchEvent(new PointerEvent('pointermove', {
  clientX: place.left + arguments[1] * place.width, clientY: place.top + place.height / 2 }));
"""


class ViewPage(Page):
    def seen(self):
        """What part of the axis is shown, once it is drawn."""
        self.driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0]))")
        return self.find(".seen").text

    def said(self):
        self.seen()
        return self.find("#status").get_attribute("textContent")

    def test_opens_from_a_file_and_asks_for_nothing_else(self):
        for page in ("small", "run"):
            self.open(page)
            self.assertEqual(self.asked(), [])
            self.assertEqual(self.driver.get_log("browser"), [])

    def test_texts_of_a_trace_stay_texts(self):
        self.open()
        self.assertIsNone(self.script("return window.broken || null"))
        self.assertEqual(self.script("return document.querySelectorAll('img').length"), 0)
        self.assertIn("</script>", self.find("h1").text)

    def test_zooms_and_moves_by_keys(self):
        self.open()
        self.assertEqual(self.seen(), "0 to 1 ms of 1 ms")
        plot = self.find(".timeline")
        plot.send_keys("+")
        self.assertEqual(self.seen(), "250 \u00b5s to 750 \u00b5s of 1 ms")
        plot.send_keys(Keys.ARROW_RIGHT)  # a fifth of what is seen
        self.assertEqual(self.seen(), "350 \u00b5s to 850 \u00b5s of 1 ms")
        plot.send_keys(Keys.PAGE_DOWN)    # no further than the end
        self.assertEqual(self.seen(), "500 \u00b5s to 1 ms of 1 ms")
        plot.send_keys("-")
        plot.send_keys("-")
        self.assertEqual(self.seen(), "0 to 1 ms of 1 ms")

    def test_zooms_by_buttons_and_by_the_wheel_around_the_pointer(self):
        self.open()
        self.find('button[aria-label="Zoom in"]').click()
        self.assertEqual(self.seen(), "250 \u00b5s to 750 \u00b5s of 1 ms")
        self.find('button[aria-label="Show everything"]').click()
        self.script(WHEEL, -400)
        self.assertNotIn("0 to", self.seen()[:4])
        self.script(WHEEL, 4000)
        self.assertEqual(self.seen(), "0 to 1 ms of 1 ms")

    def test_a_span_says_its_name_and_times_to_pointers_and_keys(self):
        self.open()
        self.script(POINT, 0, 0.3)  # the first rank's kernels
        tip = self.find(".tip")
        self.assertTrue(tip.is_displayed())
        self.assertIn("kernel", tip.text)
        self.assertIn("at 0, 600 \u00b5s long", tip.text)
        self.find(".timeline").send_keys(".")
        self.find(".timeline").send_keys(".")
        self.assertIn("</script>", self.said())
        self.assertIn("at 950 \u00b5s, 50 \u00b5s long", self.said())
        self.find(".timeline").send_keys(Keys.ARROW_DOWN)
        self.assertIn("communication", self.said())
        self.find(".timeline").send_keys(Keys.ESCAPE)
        self.assertFalse(tip.is_displayed())

    def test_a_run_has_a_row_a_policy_and_a_table_that_is_not_cut(self):
        self.open("run")
        texts = self.script("return [...document.querySelectorAll('.timeline text.strong')]"
                            ".map(text => text.textContent)")
        self.assertEqual(texts, ["exclusive", "mps"])
        table = self.find("aside table")
        self.assertEqual([cell.text for cell in table.find_elements("css selector", "tbody td")],
                         ["1.000", "0.900"])  # one filler's name is said in no row
        cut = "return document.querySelector('aside .scroll').scrollWidth > " \
              "document.querySelector('aside .scroll').clientWidth"
        for width, beside in ((1280, False), (1500, True)):
            self.size(width)
            self.seen()
            plot = self.find(".timeline").rect
            self.assertEqual(table.rect["x"] >= plot["x"] + plot["width"], beside)
            self.assertFalse(self.script(cut))
        self.size(1280)
        self.find(".timeline").send_keys("+")
        self.find("select").send_keys("GPU 1")
        self.assertIn("3.75 ms to 11.25 ms", self.seen())  # what was seen stays

    def test_the_figure_is_a_table_too(self):
        self.open()
        self.find("details summary").send_keys(Keys.ENTER)
        WebDriverWait(self.driver, PATIENCE_S).until(
            lambda driver: driver.find_elements("css selector", "details tbody tr"))
        rows = [row.text for row in self.driver.find_elements("css selector", "details tbody tr")]
        self.assertIn("rank 0 bubbles collective wait collective wait 1 0.3", rows)  # 600 to 900 us

    def test_what_is_reached_has_a_name(self):
        for page in ("small", "run"):
            self.open(page)
            self.assertEqual(self.script(UNNAMED), [])
            self.assertTrue(self.find("svg[role=img] desc").get_attribute("textContent"))

    def test_fits_desktops_and_phones(self):
        for page in ("small", "run", "large"):
            for width in (1280, 390):
                self.open(page, width=width)
                self.assertLessEqual(
                    self.script("return document.documentElement.scrollWidth"), width, page)
                self.assertLessEqual(self.find(".timeline svg").size["width"], width)

    def test_is_dark_where_the_reader_prefers_it(self):
        self.open()
        self.assertEqual(self.script(BACKGROUND), "rgb(255, 255, 255)")
        self.prefer_dark()
        dark = self.script(BACKGROUND)
        self.assertLess(sum(int(n) for n in dark[4:-1].split(",")), 150)

    def test_three_hundred_thousand_kernels_open_at_once(self):
        self.assertLess(os.path.getsize(os.path.join(self.folder, "large.html")), 10 * 10 ** 6)
        self.open("large")
        self.assertLess(self.script("return performance.now()"), OPENS_WITHIN_MS)
        self.assertIn("300000 device operations", self.find("section .note").text)
        # Drawn from columns: not a stroke a kernel.
        self.assertLess(self.script(DRAWN_BYTES), 10 ** 6)
        plot = self.find(".timeline")
        for _ in range(10):
            plot.send_keys("+")
        self.seen()
        self.assertGreater(self.script(STROKES), 0)
        self.script(POINT, 0, 0.5)
        self.assertIn("20 \u00b5s long", self.find(".tip").text)
        self.assertEqual(self.driver.get_log("browser"), [])


if __name__ == "__main__":
    main(ViewPage)
