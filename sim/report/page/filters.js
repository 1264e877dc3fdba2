// What is shown: plain form controls.

function choiceField(name, options, value, onChange) {
  const select = h('select', { on: { change: () => onChange(select.value) } },
    options.map(([id, text]) => h('option', { value: id }, text)));
  select.value = String(value);
  return h('label', { class: 'field' }, h('span', null, name), select);
}

function policyBoxes() {
  const there = new Set(candidates().map((point) => point.policy));
  const boxes = policies.filter((policy) => there.has(policy.id)).map((policy) => {
    const box = h('input', { type: 'checkbox', on: { change: () => {
      if (box.checked) state.hidden.delete(policy.id); else state.hidden.add(policy.id);
      changed();
    } } });
    box.checked = !state.hidden.has(policy.id);
    return h('label', { title: policy.parameters.replaceAll(';', '\n') || null }, box,
      swatch(policy.id), policy.label);
  });
  return h('fieldset', null, h('legend', null, 'Policies'),
    h('div', { class: 'policies' }, boxes));
}

function axisField(axis, place) {
  return choiceField(axisName(axis.pointer) + (axis.choices.length < axis.values.length
    ? ' (ranges)' : ''),
  [[-1, 'all'], ...axis.choices.map((choice, at) => [at,
    axis.choices.length === axis.values.length ? valueText(axis, at) : choice])],
  state.choices[place], (value) => {
    state.choices[place] = Number(value);
    changed();
  });
}

function drawFilters() {
  const form = byId('filters');
  const focused = [...form.querySelectorAll('select, input, button')]
    .indexOf(document.activeElement);
  const sweep = sweeps[state.sweep];
  const fields = [];
  fields.push(choiceField('Sweep', sweeps.map((one, place) => [place, one.name]), state.sweep,
    (value) => {
      state.sweep = Number(value);
      state.choices = sweeps[state.sweep].axes.map(() => -1);
      state.axis = -1;
      state.point = null;
      changed();
    }));
  fields.push(choiceField('Filler', fillersOf(state.sweep).map((place) =>
    [place, data.fillers[place] || '(none)']), state.filler, (value) => {
    state.filler = Number(value);
    changed();
  }));
  sweep.axes.forEach((axis, place) => {
    if (axis.choices.length > 1) fields.push(axisField(axis, place));
  });
  fields.push(h('button', { type: 'button', on: { click: () => {
    state.choices = state.choices.map(() => -1);
    state.hidden.clear();
    changed();
  } } }, 'Show all'));
  fill(form, ...fields, policyBoxes());
  const controls = form.querySelectorAll('select, input, button');
  if (focused >= 0 && controls[focused]) controls[focused].focus();
}
