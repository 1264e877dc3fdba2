// Figure 4 and on: what happened on the GPUs around one iteration.

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
    left.push(`${fixed(timeline.slicesLeftOut, 0)} are left out (${
      plural(timeline.gpusLeftOut, 'GPU')} not shown)`);
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

function timelinePart(timeline, place) {
  const run = runs.findIndex((one) => one.key === timeline.key);
  const point = points.find((one) => one.runs.includes(run) &&
    policies[one.policy].name === timeline.policy);
  const title = `Figure ${4 + place}. ${point ? pointName(point) : timeline.policy}, seed ${
    run >= 0 ? runs[run].seed : '?'}`;
  const container = h('div', null);
  const { redraw } = timelineChart(container, timeline.chart, { title });
  const part = h('div', { class: 'figure' },
    h('h3', null, title), h('p', { class: 'note' }, timelineNote(timeline)), container,
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
