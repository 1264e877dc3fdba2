// Figure 3: how much of the bubbles each policy recovers.

const kBarsOfAPolicy = 4;
const kBars = 60;

/** Rows of the figure: a bar a point; where there are many, a row a policy with a mark a point. */
function barRows() {
  const place = metricPlace.get('bubble_recovered_fraction');
  const groups = new Map();
  for (const point of shownPoints) {
    const value = figure(point, place);
    if (value === null) continue;
    if (!groups.has(point.policy)) groups.set(point.policy, []);
    groups.get(point.policy).push({ point, value });
  }
  const all = [...groups.entries()].sort((a, b) => a[0] - b[0]);
  const count = all.reduce((sum, [, list]) => sum + list.length, 0);
  const few = count <= kBars && all.every(([, list]) => list.length <= kBarsOfAPolicy);
  return { few, groups: all };
}

function barOf({ point, value }, x, top, height, box, text) {
  const parts = [s('rect', { class: `bar ${hue(point.policy)}`, x: box.left, y: round(top),
    width: round(Math.max(0.5, x.scale(value.mean) - box.left)), height: round(height) })];
  let end = x.scale(value.mean);
  if (value.half) {
    const middle = top + height / 2;
    end = Math.max(end, x.scale(value.mean + value.half));
    parts.push(line(x.scale(value.mean - value.half), middle, end, middle, 'axis'));
  }
  parts.push(label(end + 6, top + height / 2 + 4, text, { class: 'tick' }));
  return parts;
}

function stripOf(policy, list, x, top, height) {
  const values = list.map(({ value }) => value.mean);
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  return [s('rect', { class: `range ${hue(policy)}`, x: round(x.scale(low)), y: round(top),
    width: round(Math.max(1, x.scale(high) - x.scale(low))), height: round(height) })];
}

function drawBars(plot, width) {
  const { few, groups } = barRows();
  const name = (policy) => policies[policy].label;
  const long = Math.max(0, ...groups.map(([policy]) => textWidth(name(policy))));
  const above = width < 560 || long > width * 0.35;
  const box = { left: above ? 0 : Math.ceil(long) + 12, right: width - (few ? 150 : 16), top: 8 };
  if (above && few) box.right = width - 120;
  const bar = few ? 13 : 18;
  const x = linearScale(0, Math.max(1, ...groups.flatMap(([, list]) =>
    list.map(({ value }) => value.mean))), box.left, box.right, 5);
  const parts = [];
  const marks = [];
  const differing = varied();
  let y = box.top;
  for (const [policy, list] of groups) {
    if (above) y += 16;
    const rows = few ? list.length : 1;
    const middle = y + (rows * (bar + 3)) / 2;
    parts.push(above ? label(0, y - 4, name(policy).slice(0, Math.floor(width / 6.7)), {})
      : label(box.left - 10, middle + 3, name(policy), { 'text-anchor': 'end' }));
    if (!few) parts.push(...stripOf(policy, list, x, y, bar));
    for (const one of list) {
      const settings = few && width > 700 ? settingsText(one.point, differing) : '';
      const text = marked(figureText(one.value), one.point.losses) + (settings ? `  (${shortened(settings)})`
        : '');
      if (few) parts.push(...barOf(one, x, y, bar, box, text));
      marks.push({ point: one.point.id, policy, x: round(x.scale(one.value.mean)),
        y: round(y + bar / 2), bound: false,
        text: markText(one.point, [metricPlace.get('bubble_recovered_fraction')]) });
      if (few) y += bar + 3;
    }
    y += few ? 8 : bar + 10;
  }
  box.bottom = y;
  const grid = x.ticks.flatMap((tick) => [line(x.scale(tick), box.top, x.scale(tick), box.bottom,
    'grid'), label(x.scale(tick), box.bottom + 16, x.text(tick), { class: 'tick',
    'text-anchor': tick === 0 && above ? 'start' : 'middle' })]);
  const height = box.bottom + 42;
  putChart(plot, width, height, `Bubbles recovered: ${plural(groups.length, 'policy', 'policies')}`,
    'Bubble time during which a filler ran, in percent of all bubble time.',
    [...grid, ...parts, ...(few ? [] : markLayers(marks, marks.length > 300 ? 2.4 : 3.6)),
      line(box.left, box.top, box.left, box.bottom, 'axis'),
      label(box.right, box.bottom + 36, 'bubbles recovered, % \u2192', { class: 'title',
        'text-anchor': 'end' })], marks);
}

/** Axes that still differ among what is chosen. */
function varied() {
  return sweeps[state.sweep].axes.map((axis, place) => place).filter((place) =>
    new Set(shownPoints.map((point) => point.values[place])).size > 1);
}

const shortened = (text) => (text.length > 22 ? `${text.slice(0, 21)}\u2026` : text);

function barsView() {
  const section = byId('bubbles');
  const note = h('p', { class: 'note' });
  const plot = plotPlace('Figure 3');
  const table = h('div', null);
  fill(section, h('h2', { id: 'bubbles-title' }, 'Figure 3. Bubbles recovered'), note,
    h('div', { class: 'figure' }, plot), table);
  const redraw = drawnIn(plot, (width) => drawBars(plot, width));
  return () => {
    const { few, groups } = barRows();
    section.hidden = groups.length === 0;
    if (section.hidden) return;
    note.textContent = 'Bubble time during which a filler\u2019s operation ran, of all bubble ' +
      'time: time in which no computing kernel of training runs. ' +
      (few ? 'A bar a setting: the mean over its seeds, thin lines its interval.'
        : 'A mark a setting; the band reaches from the least to the most.') +
      lossNote(groups.flatMap(([, list]) => list.map(({ point }) => point)));
    fill(table, dataTable('Bubbles recovered', [
      { id: 'policy', title: 'policy', text: ({ point }) => rowName(point) },
      { id: 'settings', title: 'settings', text: ({ point }) => settingsText(point) },
      { id: 'recovered', title: 'bubbles recovered', unit: '%', number: true,
        text: ({ value }) => figureText(value) },
    ], groups.flatMap(([, list]) => list)));
    redraw();
  };
}
