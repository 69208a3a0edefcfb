// What the API server has, by the names that kubectl takes.

import { Refused, ask } from './connection.js';

const formatOf = (version) => (
  `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`);
const headers = { Accept: `${formatOf('v2')},${formatOf('v2beta1')},application/json` };

// The resource of a name: plural, singular, short, or a kind, with or without version and group.
// `null` where the server or the user's rights do not let it be looked up.
export async function discovered(name, signal) {
  const all = [];
  for (const path of ['api', 'apis']) {
    let document;
    try {
      document = await (await ask(path, { headers, signal })).json();
    } catch (error) {
      if (error instanceof Refused && error.status === 403) return null;
      throw error;
    }
    if (document.kind !== 'APIGroupDiscoveryList') return null;
    all.push(...document.items.flatMap(listed));
  }
  const wanted = name.toLowerCase();
  const isFull = (it) => it.names.some((base) => formsOf(base, it.resource).includes(wanted));
  const found = all.find(isFull) || all.find((it) => it.short.includes(wanted));
  if (!found) throw new Refused(404, `The server has no ${name}.`);
  return found.resource;
}

// The resources of a group that can be listed, each with its names; preferred versions first.
function listed(item) {
  const group = item.metadata.name || '';
  return item.versions.flatMap(({ version, resources }) => {
    const usable = (resources || []).filter((it) => it.responseKind && it.verbs.includes('list'));
    return usable.map((it) => {
      const { resource: plural, responseKind: { kind } } = it;
      const id = [plural, version, group].filter(Boolean).join('.');
      const namespaced = it.scope === 'Namespaced';
      return {
        resource: { id, group, version, plural, kind, namespaced },
        names: [plural, it.singularResource || plural, kind.toLowerCase()],
        short: it.shortNames || [],
      };
    });
  });
}

const formsOf = (base, { version, group }) => [
  base, [base, group].filter(Boolean).join('.'), [base, version, group].filter(Boolean).join('.'),
];
