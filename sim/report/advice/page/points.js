// The settings that were tried, as the page's data have them, and how one is told.

const pointNames = ['policy', 'setting', 'kept', 'gain', 'requests', 'tokens', 'p95', 'seconds',
  'keeps', 'available', 'overloaded', 'oracle', 'entry'];

function pointsOf(answer) {
  const front = new Set(answer.front);
  return answer.points.map((values, id) => {
    const point = Object.fromEntries(pointNames.map((name, place) => [name, values[place]]));
    return { ...point, id, front: front.has(id), name: answer.policies[point.policy] };
  });
}

const gpusText = (gpus) => `${numberText(gpus)} GPUs`;

function whatPointIs(answer, point) {
  const parts = [];
  if (point.id === answer.recommended) parts.push('recommended');
  if (point.id === answer.runnerUp) parts.push('runner-up');
  if (point.oracle) parts.push('an oracle: no system can have it');
  else if (!point.available) parts.push('the system lacks something for it');
  if (point.front) parts.push('on the front');
  if (!point.keeps) parts.push('beyond a limit');
  return parts;
}

function pointText(answer, point) {
  const latency = point.overloaded ? ', overloaded'
    : point.p95 === null ? '' : `, p95 ${numberText(point.p95)} ms`;
  return [point.setting, `keeps ${fixed(point.kept, 4)} of training, gains ${
    gpusText(point.gain)} (${numberText(point.requests)} requests/s)${latency}`,
  `simulated for ${numberText(point.seconds)} s`, ...whatPointIs(answer, point)].join('\n');
}

function pointsTable(answer, points) {
  const columns = [
    valueColumn('setting', 'setting', '', (point) => point.setting),
    valueColumn('kept', 'training kept', '', (point) => point.kept, 4),
    valueColumn('gain', 'filler gained', 'GPUs', (point) => point.gain, 4),
    valueColumn('requests', 'requests', '1/s', (point) => point.requests, 2)];
  if (points.some((point) => point.tokens > 0)) {
    columns.push(valueColumn('tokens', 'tokens', '1/s', (point) => point.tokens, 0));
  }
  if (points.some((point) => point.p95 !== null)) {
    columns.push(valueColumn('p95', 'p95', 'ms',
      (point) => (point.overloaded ? null : point.p95), 3));
  }
  columns.push(valueColumn('seconds', 'simulated', 's', (point) => point.seconds, 2),
    valueColumn('what', 'what it is', '', (point) => whatPointIs(answer, point).join(', ')));
  columns[0].long = true;
  columns[columns.length - 1].long = true;
  return sortedTable('Settings that were tried', columns, points);
}
