// What several modules read: the selection, and what is picked. Controls change it (main.js);
// everything else belongs to the module that shows it.

export const state = {
  // 'collections' (of its own at a phone's width only), 'changes' or 'objects'.
  view: 'changes',
  // The entry of the list that is picked: a change or an object.
  picked: null,
  // Selects in the browser.
  text: '',
  // Whether changes of nothing but noise are shown.
  noise: false,
};

// Select on the server.
export const filters = { kind: '', namespace: '', labels: '' };

export const narrow = matchMedia('(max-width: 760px)');
