// Figure 1: two figures that are traded, a point each policy and setting, and the front.

function frontOf(trade) {
  const same = (choices) => choices.every((choice, place) => choice === state.choices[place]);
  const found = sweeps[state.sweep].fronts.find(([filler, place, choices]) =>
    filler === state.filler && place === trade.place && same(choices));
  return found ? found[3] : [];
}

/** Steps through the front's points: what lies beyond is beaten. */
function frontLine(ids, x, y, trade) {
  const at = ids.map((id) => points[id]).map((point) => [x.scale(figure(point, trade.x).mean),
    y.scale(figure(point, trade.y).mean)]);
  return steppedLine(at, metrics[trade.x].less);
}

function intervals(marks, x, y, box) {
  const parts = [];
  for (const { policy, xValue, yValue } of marks) {
    const [u, v] = [x.scale(xValue.mean), y.scale(yValue.mean)];
    const low = xValue.mean - xValue.half;
    if (xValue.half && (!x.log || low > 0)) {
      parts.push(clipped(box, x.scale(low), v, x.scale(xValue.mean + xValue.half), v,
        `interval ${hue(policy)}`));
    }
    const under = yValue.mean - yValue.half;
    if (yValue.half && (!y.log || under > 0)) {
      parts.push(clipped(box, u, y.scale(under), u, y.scale(yValue.mean + yValue.half),
        `interval ${hue(policy)}`));
    }
  }
  return parts;
}

function markText(point, places) {
  const values = places.map((place) => {
    const metric = metrics[place];
    return `${metric.title} ${figureText(figure(point, place))} ${metric.unit}`.trim();
  });
  return [pointName(point), ...values].join('\n');
}

function scatterMarks(trade) {
  return shownPoints.map((point) => ({ point: point.id, policy: point.policy,
    xValue: figure(point, trade.x), yValue: figure(point, trade.y) }))
    .filter(({ xValue, yValue }) => xValue !== null && yValue !== null)
    .sort((a, b) => a.policy - b.policy || a.xValue.mean - b.xValue.mean);
}

function drawScatter(plot, width, trade) {
  const height = Math.max(320, Math.min(460, width * 0.62));
  const box = { left: 52, right: width - 12, outer: width, top: 30, bottom: height - 46 };
  const marks = scatterMarks(trade);
  const ticks = Math.max(3, Math.floor(width / 90));
  const x = scaleFor(marks.map((one) => one.xValue.mean), box.left, box.right, ticks, 8);
  const y = scaleFor(marks.map((one) => one.yValue.mean), box.bottom, box.top, 6, 30);
  const front = frontOf(trade).filter((id) => points[id] !== undefined);
  const onFront = new Set(front);
  const line = frontLine(front, x, y, trade);
  for (const one of marks) {
    one.x = round(x.scale(one.xValue.mean));
    one.y = round(y.scale(one.yValue.mean));
    one.bound = one.xValue.bound || one.yValue.bound;
    one.text = markText(points[one.point], [trade.x, trade.y]) +
      (onFront.has(one.point) ? '\non the front' : '');
  }
  const named = new Map();
  for (const one of marks) {
    const old = named.get(one.policy);
    if (!old || (onFront.has(one.point) && !onFront.has(old.point))) named.set(one.policy, one);
  }
  const wanted = named.size > 14 ? [] : [...named.values()].map((one) => ({ x: one.x, y: one.y,
    policy: one.policy, text: rowName(points[one.point]) }));
  putChart(plot, width, height, `${trade.title}: ${plural(marks.length, 'point')}`,
    `${metricTitle(metrics[trade.y])} over ${metricTitle(metrics[trade.x])}; ` +
    `${plural(front.length, 'point')} on the Pareto front.`,
    [...axes(box, x, y, metricTitle(metrics[trade.x]), metricTitle(metrics[trade.y])),
      ...line.parts,
      ...(marks.length <= 80 ? intervals(marks, x, y, box) : []),
      ...markLayers(marks, marks.length > 600 ? 2.6 : marks.length > 120 ? 3.6 : 4.8),
      ...placedLabels(wanted, marks.slice(0, 400), line.room, box)], marks);
}

function scatterNote(trade) {
  const way = (place) => (metrics[place].less ? 'less' : 'more');
  const chosen = state.choices.some((choice) => choice >= 0);
  const lost = frontOf(trade).length === 0 && sweeps[state.sweep].frontsLeftOut > 0;
  return [`A point is a policy at one setting: the mean over its seeds${
    shownPoints.some((point) => point.runs.length > 1)
      ? `, lines the ${numberText(data.confidence * 100)} % interval of that mean` : ''}.`,
  lost ? 'No front was computed for this combination of choices.'
    : `The line is the Pareto front (${way(trade.x)} ${metrics[trade.x].title}, ${
      way(trade.y)} ${metrics[trade.y].title} is better) of ${chosen
      ? 'the settings chosen' : 'all settings'}, hidden policies included, oracles not.`,
  'Hollow marks: a latency that is only a lower bound, as requests were unfinished, or one of a ' +
    'filler that falls behind.' + lossNote(shownPoints)].join(' ');
}

function scatterTable(trade) {
  const front = new Set(frontOf(trade));
  const column = (place) => ({ id: metrics[place].column, title: metrics[place].title,
    unit: metrics[place].unit, number: true,
    text: (one) => figureText(figure(points[one.point], place)) });
  return dataTable(trade.title, [
    { id: 'policy', title: 'policy', text: (one) => rowName(points[one.point]) },
    { id: 'settings', title: 'settings', text: (one) => settingsText(points[one.point]) },
    column(trade.x), column(trade.y),
    { id: 'front', title: 'on the front', text: (one) => (front.has(one.point) ? 'yes' : 'no') },
  ], scatterMarks(trade));
}

function scatterView() {
  const section = byId('trade');
  const controls = h('div', { class: 'controls' });
  const plot = plotPlace('Figure 1');
  const note = h('p', { class: 'note' });
  const table = h('div', null);
  fill(section, h('h2', { id: 'trade-title' }, 'Figure 1. Throughput against latency'), note,
    controls, h('div', { class: 'figure' }, plot), table);
  const redraw = drawnIn(plot, (width) => {
    const trade = tradesOf().find((one) => one.place === state.trade);
    if (trade) drawScatter(plot, width, trade);
  });
  return () => {
    const trades = tradesOf();
    const trade = trades.find((one) => one.place === state.trade);
    section.hidden = trade === undefined;
    if (section.hidden) return;
    note.textContent = scatterNote(trade);
    fill(controls, choiceField('Figure', trades.map((one) => [one.place, one.title]), state.trade,
      (value) => {
        state.trade = Number(value);
        changed();
        controls.querySelector('select').focus();
      }));
    fill(table, scatterTable(trade));
    redraw();
  };
}
