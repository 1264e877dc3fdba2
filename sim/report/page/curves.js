// Figure 2: a figure along an axis of the sweep, a curve each policy (and other settings).

function curvesShown() {
  const wanted = new Set(shownPoints.map((point) => point.id));
  const curves = sweeps[state.sweep].curves
    .filter(([filler, , axis]) => filler === state.filler && axis === state.axis)
    .map(([, policy, , ids]) => ({ policy, ids: ids.filter((id) => wanted.has(id) &&
      points[id].figures[state.metric] !== null) }))
    .filter((curve) => curve.ids.length > 0);
  return curves.length > 0 ? curves : loosePoints();
}

/** Where points differ by more than this axis: those of a policy, without a line. */
function loosePoints() {
  const there = shownPoints.filter((point) => point.values[state.axis] >= 0 &&
    point.figures[state.metric] !== null);
  return [...new Set(there.map((point) => point.policy))].map((policy) => ({ policy, loose: true,
    ids: there.filter((point) => point.policy === policy)
      .sort((a, b) => a.values[state.axis] - b.values[state.axis]).map((point) => point.id) }));
}

/** What tells curves of one policy apart. */
function otherSettings(curve) {
  const { axes: all } = sweeps[state.sweep];
  const others = all.map((_, place) => place)
    .filter((place) => place !== state.axis && state.choices[place] < 0 &&
      all[place].values.length > 1);
  return settingsText(points[curve.ids[0]], others);
}

function curveMarks(curve, x, y) {
  return curve.ids.map((id) => {
    const axis = sweeps[state.sweep].axes[state.axis];
    const value = figure(points[id], state.metric);
    return { point: id, policy: curve.policy, bound: value.bound, value,
      x: round(x.scale(axis.numbers[points[id].values[state.axis]])),
      y: round(y.scale(value.mean)), text: markText(points[id], [state.metric]) };
  });
}

function curveParts(curve, y, box) {
  const { marks } = curve;
  const path = marks.map(({ x, y: at }, place) => `${place === 0 ? 'M' : 'L'}${x} ${at}`).join('');
  const { policy } = marks[0];
  const whiskers = marks.filter(({ value }) => value.half &&
    (!y.log || value.mean > value.half)).map(({ x, value }) =>
    clipped(box, x, y.scale(value.mean - value.half), x, y.scale(value.mean + value.half),
      `interval ${hue(policy)}`));
  return curve.loose ? whiskers : [...whiskers, s('path', { class: `line ${hue(policy)}`, d: path,
    'stroke-dasharray': dash(policy) })];
}

/** Names at the ends of the curves, moved apart, with a line to the end where moved. */
function endLabels(curves, box) {
  const items = curves.map(({ marks, text, policy }) => {
    const end = marks[marks.length - 1];
    return { x: end.x, y: end.y, text, policy };
  });
  if (items.length > Math.floor((box.bottom - box.top) / 14)) return [];
  return spread(items, 14, box.top, box.bottom).flatMap(({ x, y, at, text, policy }) => {
    const parts = [];
    if (Math.abs(at - y) > 4 || x < box.right - 2) {
      parts.push(line(x + 6, y, box.right + 10, at, 'leader'));
    }
    parts.push(label(box.right + 13, at + 4, text, { class: `tagged ${hue(policy)}` }));
    return parts;
  });
}

function drawCurves(plot, width) {
  const axis = sweeps[state.sweep].axes[state.axis];
  const metric = metrics[state.metric];
  const shownCurves = curvesShown();
  const several = new Set(shownCurves.map((curve) => curve.policy)).size < shownCurves.length;
  const narrow = width < 560;
  for (const curve of shownCurves) {
    const other = several && !narrow && !curve.loose ? otherSettings(curve) : '';
    const losses = curve.ids.flatMap((id) => points[id].losses);
    const text = marked(policies[curve.policy].plain, losses) + (other ? `, ${other}` : '');
    const most = narrow ? 14 : 28;
    curve.text = text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
  }
  const longest = Math.max(0, ...shownCurves.map((curve) => textWidth(curve.text)));
  const height = Math.max(300, Math.min(430, width * 0.55));
  const box = { left: 52, right: width - longest - 18, outer: width, top: 30,
    bottom: height - 46 };
  const values = shownCurves.flatMap((curve) => curve.ids.map((id) =>
    figure(points[id], state.metric).mean));
  const numbers = shownCurves.flatMap((curve) => curve.ids.map((id) =>
    axis.numbers[points[id].values[state.axis]]));
  const x = scaleFor(numbers, box.left + 6, box.right, Math.max(3, width / 110), 8);
  const y = scaleFor(values, box.bottom, box.top, 6, 12);
  for (const curve of shownCurves) curve.marks = curveMarks(curve, x, y);
  const marks = shownCurves.flatMap((curve) => curve.marks);
  const title = `${metric.title} over ${axisName(axis.pointer)}`;
  putChart(plot, width, height, `${title}: ${plural(shownCurves.length, 'curve')}`,
    `${metricTitle(metric)} along ${axis.pointer}${axis.unit ? `, ${axis.unit}` : ''}.`,
    [...axes(box, x, y, axisTitle(axis), metricTitle(metric)),
      ...shownCurves.flatMap((curve) => curveParts(curve, y, box)),
      ...markLayers(marks, marks.length > 300 ? 2.6 : 4), ...endLabels(shownCurves, box)], marks);
}

function axisTitle(axis) {
  const name = axisName(axis.pointer);
  if (axis.unit) return `${name}, ${axis.unit}`;
  return /rate.per.s$/.test(name) ? name.replace(/ ?rate per s$/, ' arrivals, requests/s').trim()
    : name;
}

function curveControls() {
  const redrawn = (place) => (value) => {
    state[place] = Number(value);
    changed();
    const selects = byId('curves').querySelectorAll('.controls select');
    selects[place === 'metric' ? 0 : selects.length - 1].focus();
  };
  const fields = [choiceField('Figure', measured().map((one) => [one.place, one.title]),
    state.metric, redrawn('metric'))];
  if (numericAxes().length > 1) {
    fields.push(choiceField('Along', numericAxes().map((one) => [one.place,
      axisName(one.pointer)]), state.axis, redrawn('axis')));
  }
  return fields;
}

function curveTable() {
  const axis = sweeps[state.sweep].axes[state.axis];
  const metric = metrics[state.metric];
  const rows = curvesShown().flatMap((curve) => curve.ids.map((id) => points[id]));
  return dataTable(`${metric.title} over ${axisName(axis.pointer)}`, [
    { id: 'policy', title: 'policy', text: rowName },
    { id: 'settings', title: 'settings', text: (point) => settingsText(point) },
    { id: 'figure', title: metric.title, unit: metric.unit, number: true,
      text: (point) => figureText(figure(point, state.metric)) },
  ], rows);
}

function curvesView() {
  const section = byId('curves');
  const title = h('h2', { id: 'curves-title' });
  const note = h('p', { class: 'note' });
  const controls = h('div', { class: 'controls' });
  const plot = plotPlace('Figure 2');
  const table = h('div', null);
  fill(section, title, note, controls, h('div', { class: 'figure' }, plot), table);
  const there = () => state.axis >= 0 && state.metric >= 0;
  const redraw = drawnIn(plot, (width) => there() && drawCurves(plot, width));
  return () => {
    section.hidden = !there();
    if (section.hidden) return;
    const axis = sweeps[state.sweep].axes[state.axis];
    const load = /(rate_per_s|load)$/.test(axis.pointer);
    title.textContent = `Figure 2. ${load ? 'Load and latency' : 'Along an axis of the sweep'}`;
    const drawn = curvesShown().flatMap((curve) => curve.ids.map((id) => points[id]));
    note.textContent = 'A curve a policy and other settings; means over seeds' +
      `, vertical lines their ${numberText(data.confidence * 100)} % intervals where there are ` +
      'several. Hollow marks are lower bounds.' +
      (drawn.length === 0 ? ' Nothing that is chosen varies along this axis.' : lossNote(drawn));
    fill(controls, ...curveControls());
    fill(table, curveTable());
    redraw();
  };
}
