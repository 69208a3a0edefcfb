// The panel of one object: its last changes, and its YAML.

import { changeOf } from './change_rows.js';
import { prepared, takeKinds } from './changes.js';
import { held } from './collections.js';
import { adviceOn, ask, statusOf } from './connection.js';
import { focusList, redraw } from './list.js';
import { apiPath } from './objects.js';
import { state } from './state.js';
import { follow } from './streams.js';
import { bdi, by, el, full, plain } from './text.js';
import { folded, yaml } from './yaml.js';

// The most changes that are shown.
const LAST = 50;
// Pause before the YAML is read again after a change, in ms: others may follow.
const READ_AGAIN = 300;

// The object that is shown: `{ resource, namespace, name }`.
let shown = null;
let stop = null;
let again = null;
let start = null;

export const isOpen = () => shown !== null;

// Opens an entry of the list: a change or an object, after a pause in ms if there is one.
export function open(it, wait = 0) {
  redraw(false);
  if (it.type === 'gap') return;
  state.picked = it;
  closeDetail(false);
  const resource = resourceOf(it);
  const of = { resource, namespace: it.namespace || '', name: it.name };
  shown = of;
  document.body.classList.add('with-detail');
  by('detail').hidden = false;
  const group = resource.group ? `${resource.group}/` : '';
  by('detail-kind').textContent = plain(`${resource.kind} · ${group}${resource.version}`);
  by('detail-name').replaceChildren(bdi(full(of)));
  sayOfHistory('No change since this endpoint began to hold it.');
  by('yaml').replaceChildren('…');
  start = setTimeout(() => read(of, it.verb === 'deleted'), wait);
}

export function closeDetail(isFocused) {
  if (stop) stop();
  clearTimeout(again);
  clearTimeout(start);
  stop = null;
  shown = null;
  by('detail').hidden = true;
  document.body.classList.remove('with-detail');
  if (isFocused) focusList();
}

// Shows the 'history' or the 'yaml'.
export function showTab(name) {
  for (const tab of ['history', 'yaml']) {
    const button = by(`tab-${tab}`);
    by(tab).hidden = tab !== name;
    button.setAttribute('aria-selected', String(tab === name));
    button.tabIndex = tab === name ? 0 : -1;
  }
}
export const otherTab = () => (by('yaml').hidden ? 'yaml' : 'history');

// Objects know their resource, changes its id, as `deployments.v1.apps`.
function resourceOf(it) {
  if (typeof it.resource !== 'string') return it.resource;
  const collection = held.get(it.resource);
  if (collection) return collection;
  const [plural, version, ...group] = it.resource.split('.');
  const namespaced = Boolean(it.namespace);
  return { id: it.resource, plural, version, group: group.join('.'), kind: it.kind, namespaced };
}

function read(of, isGone) {
  const seen = new Map();
  const path = () => {
    const query = new URLSearchParams({ resource: of.resource.id, name: of.name, last: LAST });
    if (of.namespace) query.append('namespace', of.namespace);
    for (const [id, version] of seen) query.append('after', `${id}@${version}`);
    return `ui/changes?${query}`;
  };
  const take = (line) => {
    if (line.type === 'hello') takeKinds(line);
    if (line.type === 'at') for (const it of Object.entries(line.versions)) seen.set(...it);
    if (line.type !== 'change') return;
    const history = by('history');
    if (!history.querySelector('.change')) history.replaceChildren();
    history.prepend(changeOf(prepared(line)));
    while (history.children.length > LAST) history.lastChild.remove();
    if (line.verb !== 'deleted' && line.past) return;
    clearTimeout(again);
    if (line.verb === 'deleted') gone();
    else again = setTimeout(() => readYaml(of), READ_AGAIN);
  };
  const refused = (error) => sayOfHistory(adviceOn(error));
  stop = follow('detail', path, (batch) => batch.forEach(take), { refused });
  if (isGone) gone(); else readYaml(of);
}

async function readYaml(of) {
  const node = by('yaml');
  try {
    const path = apiPath(of.resource, of.namespace, of.name);
    const object = await (await ask(path, { headers: { Accept: 'application/json' } })).json();
    if (shown !== of) return;
    const top = node.scrollTop;
    node.replaceChildren(...yaml(folded(object)));
    node.scrollTop = top;
  } catch (error) {
    if (shown !== of) return;
    if (statusOf(error) === 404) gone(); else sayOfYaml(adviceOn(error));
  }
}

const gone = () => sayOfYaml('It is gone. Its last changes tell how it was.');
const sayOfYaml = (text) => {
  by('yaml').replaceChildren(el('span', { class: 'note', text: `# ${text}` }));
};
const sayOfHistory = (text) => by('history').replaceChildren(el('p', { class: 'empty', text }));
