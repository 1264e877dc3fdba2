// Figure 4 and on: what happened on the GPUs around one iteration.

const kLaneRows = 4;

/** Rows of a lane such that spans of one row do not overlap; the last takes what is left. */
function rowsOf(spans) {
  const ends = [];
  return spans.map(([start, length]) => {
    let row = ends.findIndex((end) => end <= start);
    if (row < 0) row = ends.length < kLaneRows ? ends.length : kLaneRows - 1;
    ends[row] = Math.max(ends[row] || 0, start + length);
    return row;
  });
}

function durationText(ns) {
  if (ns >= 1e9) return `${numberText(ns / 1e9)} s`;
  if (ns >= 1e6) return `${numberText(ns / 1e6)} ms`;
  return `${numberText(ns / 1e3)} \u00b5s`;
}

function spanText(timeline, lane, [start, length, name, kind, slices]) {
  const what = slices > 1 ? `${timeline.names[name]} and ${slices - 1} more`
    : timeline.names[name];
  return `${what} (${timeline.kinds[kind]})\n${lane.gpu}, ${lane.track}\nat ${
    durationText(start)}, ${durationText(length)} long`;
}

function laneParts(timeline, lane, place, x, y, row, marks) {
  const rows = rowsOf(lane.spans);
  const paths = new Map();
  lane.spans.forEach((span, at) => {
    const [start, length, , kind] = span;
    const left = round(x.scale(start));
    const width = Math.max(0.6, round(x.scale(start + length) - left));
    const top = y + rows[at] * row;
    paths.set(kind, `${paths.get(kind) || ''}M${left} ${top}h${width}v${row - 2}h${-width}Z`);
    marks.push({ x: left + width / 2, y: top + row / 2 - 1, policy: place,
      text: spanText(timeline, lane, span) });
  });
  const parts = [...paths.entries()].map(([kind, d]) =>
    s('path', { class: `bar k-${timeline.kinds[kind]}`, d }));
  return { parts, height: (Math.max(0, ...rows) + 1) * row };
}

function drawTimeline(timeline, plot, width, title) {
  const narrow = width < 620;
  const names = timeline.lanes.map((lane) => lane.track);
  const left = narrow ? 0 : Math.min(210, Math.ceil(Math.max(0, ...names.map(textWidth))) + 14);
  const x = linearScale(0, timeline.lengthNs, left, width - 8, Math.max(3, width / 120));
  x.scale = (ns) => left + (ns / timeline.lengthNs) * (width - 8 - left);
  const parts = [];
  const marks = [];
  let y = 6;
  let gpu = null;
  timeline.lanes.forEach((lane, place) => {
    if (lane.gpu !== gpu) {
      gpu = lane.gpu;
      parts.push(label(0, y + 12, gpu, { 'font-weight': 600 }));
      y += 20;
    }
    if (narrow) {
      parts.push(label(0, y + 11, lane.track, { class: 'tick' }));
      y += 15;
    }
    const drawn = laneParts(timeline, lane, place, x, y, 13, marks);
    if (!narrow) {
      parts.push(label(left - 10, y + drawn.height / 2 + 3, lane.track,
        { class: 'tick', 'text-anchor': 'end' }));
    }
    parts.push(...drawn.parts);
    y += drawn.height + 5;
  });
  const ticks = x.ticks.filter((tick) => tick <= timeline.lengthNs);
  const grid = ticks.flatMap((tick) => [line(x.scale(tick), 4, x.scale(tick), y, 'grid'),
    label(x.scale(tick), y + 15, numberText(tick / 1e6), { class: 'tick', 'text-anchor':
      tick === 0 ? 'start' : 'middle' })]);
  putChart(plot, width, y + 40, title, `Spans of ${plural(timeline.lanes.length, 'lane')}.`,
    [...grid, ...parts, line(left, y, width - 8, y, 'axis'), label(width - 8, y + 33,
      `ms since ${durationText(timeline.startNs)} \u2192`, { class: 'title', 'text-anchor':
        'end' })], marks);
}

function timelineNote(timeline) {
  const parts = [timeline.iterationNs > 0
    ? `One iteration of the first rank (${durationText(timeline.iterationNs)}) and some time ` +
      'around it, ' : 'No whole iteration began after the warm-up: time after it, ',
  `from ${durationText(timeline.startNs)} of simulated time on. `];
  const left = [];
  if (timeline.joined > 0) {
    left.push(`${fixed(timeline.joined, 0)} that are too short to tell apart are drawn as one ` +
      'with a neighbour');
  }
  if (timeline.slicesLeftOut > 0) {
    left.push(`${fixed(timeline.slicesLeftOut, 0)} are left out${timeline.gpusLeftOut > 0
      ? ` (${plural(timeline.gpusLeftOut, 'GPU')} not shown)` : ''}`);
  }
  parts.push(`${plural(timeline.slices, 'span')} in it${left.length > 0
    ? `: ${left.join(', ')}` : ', all shown'}. `);
  parts.push('Requests that began long before or end long after are not shown. ');
  if (!timeline.sameResult) {
    parts.push('Simulated again, the run gave other results than the store has: the program or ' +
      'the files that it reads have changed.');
  }
  return parts.join('');
}

function timelineTable(timeline, title) {
  const sums = new Map();
  for (const lane of timeline.lanes) {
    for (const [, length, name, kind, slices] of lane.spans) {
      const id = `${lane.gpu}\n${lane.track}\n${name}\n${kind}`;
      const sum = sums.get(id) || { lane, name: timeline.names[name],
        kind: timeline.kinds[kind], slices: 0, ns: 0 };
      sum.slices += slices;
      sum.ns += length;
      sums.set(id, sum);
    }
  }
  return dataTable(title, [
    { id: 'gpu', title: 'GPU', text: (sum) => sum.lane.gpu },
    { id: 'lane', title: 'lane', text: (sum) => sum.lane.track },
    { id: 'kind', title: 'kind', text: (sum) => sum.kind },
    { id: 'name', title: 'longest', text: (sum) => sum.name, long: true },
    { id: 'slices', title: 'spans', number: true, text: (sum) => fixed(sum.slices, 0) },
    { id: 'time', title: 'time', unit: 'ms', number: true,
      text: (sum) => numberText(sum.ns / 1e6) },
  ], [...sums.values()].sort((a, b) => b.ns - a.ns));
}

function timelinePart(timeline, place) {
  const run = runs.findIndex((one) => one.key === timeline.key);
  const point = points.find((one) => one.runs.includes(run) &&
    policies[one.policy].name === timeline.policy);
  const title = `Figure ${4 + place}. ${point ? pointName(point) : timeline.policy}, seed ${
    run >= 0 ? runs[run].seed : '?'}`;
  const plot = plotPlace(`Figure ${4 + place}`);
  const redraw = drawnIn(plot, (width) => drawTimeline(timeline, plot, width, title));
  const part = h('div', { class: 'figure' },
    h('h3', null, title), h('p', { class: 'note' }, timelineNote(timeline)),
    h('div', { class: 'legend' }, timeline.kinds.map((kind) =>
      h('span', null, h('i', { class: `k-${kind}` }), kind))),
    plot, timelineTable(timeline, title),
    point ? h('button', { type: 'button', on: { click: () => choosePoint(point.id, true) } },
      'Where it comes from') : null);
  return { part, redraw };
}

function timelinesView() {
  const section = byId('timelines');
  section.hidden = data.timelines.length === 0;
  const parts = data.timelines.map(timelinePart);
  fill(section, h('h2', { id: 'timelines-title' }, 'Timelines'), ...parts.map(({ part }) => part));
  let drawn = false;
  return () => {
    if (!drawn) parts.forEach(({ redraw }) => redraw());
    drawn = true;
  };
}
