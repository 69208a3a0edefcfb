// How changes and their fields look, in the list and among the last changes of an object.

import { aside, bdi, el, full, number, plain, timeOf } from './text.js';

// An entry, with its first field if there is room for it beside the object.
export function entryRow(it, inline, most) {
  const kind = it.type === 'gap' ? 'gap' : it.verb;
  const quiet = it.quiet ? ' quiet' : '';
  const attributes = {
    class: `row entry first ${kind}${quiet}`, role: 'option', id: it.key,
    'aria-label': plain(labelOf(it, most)),
  };
  const row = el('div', attributes,
    timeOf(it.time), el('span', { class: `verb ${kind}`, text: kind }));
  if (it.type === 'gap') {
    const resource = el('span', { class: 'what', text: it.resource });
    row.append(resource, aside('changes before this are not known'));
    return row;
  }
  row.append(el('span', { class: 'what', title: plain(`${it.kind} ${full(it)}`) },
    el('span', { class: 'kind', text: it.kind }),
    el('span', { class: 'of', text: it.namespace ? `${it.namespace}/` : '' }), bdi(it.name)));
  if (!inline) return row;
  const first = it.diff.changes[0];
  if (first) row.append(pathOf(first), valuesOf(first));
  else row.append(aside(it.quiet ? `noise only (${it.diff.folded})` : ''));
  return row;
}

// One more field of an entry.
export function partRow(it, field, inline) {
  const attributes = { class: `row part${it.quiet ? ' quiet' : ''}`, 'aria-hidden': 'true' };
  return el('div', attributes, ...blank(inline), pathOf(field), valuesOf(field));
}

// That an entry has more fields.
export function moreRow(more, inline) {
  const attributes = { class: 'row part', 'aria-hidden': 'true' };
  return el('div', attributes, ...blank(inline), aside(`and ${number(more)} more`));
}

// A change with all its fields; `isFresh`, if it happened just now.
export function changeOf(it, isFresh) {
  const fields = it.diff.changes;
  const asides = [];
  if (it.diff.more) asides.push(`${number(it.diff.more)} more changes`);
  if (it.quiet) asides.push('noise only: versions, heartbeats and the like');
  return el('div', { class: `change${isFresh ? ' fresh' : ''}` },
    el('p', {}, timeOf(it.time), el('span', { class: `verb ${it.verb}`, text: it.verb }),
      aside(`version ${it.version}`)),
    ...fields.map((field) => el('div', { class: 'field' }, pathOf(field), valuesOf(field))),
    asides.length ? el('p', { class: 'aside', text: asides.join(', ') }) : null);
}

// What a text is searched in.
export function textOf(it) {
  const values = it.diff.changes.map((of) => `${of.path} ${word(of.old)} ${word(of.new)}`);
  const name = full({ namespace: it.namespace, name: it.name || '' });
  return `${it.verb || ''} ${it.resource} ${it.kind} ${name} ${values.join(' ')}`;
}

function labelOf(it, most) {
  if (it.type === 'gap') return `changes of ${it.resource} were missed`;
  const field = (of) => `${of.path}: ${word(of.old)} to ${word(of.new)}`;
  const fields = it.diff.changes.slice(0, most).map(field);
  return `${it.verb} ${it.kind} ${full(it)} ${fields.join(', ')}`;
}

// In place of time, verb and object.
const blank = (inline) => (inline ? [el('span'), el('span'), el('span')] : []);

function pathOf(field) {
  return el('span', { class: 'path', title: plain(field.path) }, bdi(field.path));
}

function valuesOf(field) {
  const node = el('span', { class: 'values' });
  if (field.op === 'reordered') {
    node.append(aside('in another order'));
    return node;
  }
  if (!field.old || !field.new) {
    node.append(el('span', { class: 'sign', text: field.new ? '+' : '−' }));
  }
  if (field.old) node.append(el('bdi', { class: 'old', text: word(field.old) }));
  if (field.old && field.new) node.append(el('span', { class: 'arrow', text: '→' }));
  if (field.new) node.append(el('bdi', { class: 'new', text: word(field.new) }));
  return node;
}

// A value of the diff as one line.
function word(shown) {
  if (!shown) return '';
  if ('hiddenBytes' in shown) return `hidden, ${shown.hiddenBytes} bytes`;
  if ('text' in shown) {
    const isCut = shown.from + shown.text.length < shown.bytes;
    return `${shown.from ? '…' : ''}${shown.text}${isCut ? '…' : ''}`;
  }
  return typeof shown.value === 'string' ? shown.value : JSON.stringify(shown.value);
}
