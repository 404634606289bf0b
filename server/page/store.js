// Conversations are kept in this browser and nowhere else: in IndexedDB, bounded in number and size.
// Where a browser keeps nothing (private windows, some settings) they last as long as the page.

const database = "moeflux", table = "conversations";
const unsettled = "unsettled"; // the setting that holds changes which pages left unconfirmed
const most = 200; // conversations
const largest = 8 << 20; // characters of one

/** Store keeps conversations by their ids. lasting tells whether they outlive the page. */
export class Store {
  lasting = true;
  #db = null;
  #memory = new Map();
  #unsure = new Map(); // ids to what the database has not confirmed: a conversation; null: removed

  async open() {
    try {
      this.#db = await done(Object.assign(indexedDB.open(database, 1), {
        onupgradeneeded() { this.result.createObjectStore(table, { keyPath: "id" }); },
      }));
    } catch {
      this.lasting = false;
    }
    await this.#settle();
    return this;
  }

  /**
   * leave must be called when the page is left. The browser then drops changes that its database
   * has not begun. So unconfirmed changes also go to the local storage, which takes them at once,
   * and the next page makes them.
   */
  leave() {
    if (this.#unsure.size > 0) settings.set(unsettled, { ...settings.get(unsettled, {}), ...Object.fromEntries(this.#unsure) });
  }

  // settle makes the changes that pages have left unconfirmed.
  async #settle() {
    if (!this.#db) return;
    const kept = new Map((await this.list()).map((c) => [c.id, c]));
    for (const [id, c] of Object.entries(settings.get(unsettled, {}))) {
      try {
        if (c === null) await this.remove(id);
        else if (kept.get(id)?.updated > c.updated) forget(id);
        else await this.put(c);
      } catch {
        forget(id); // there is no room for it
      }
    }
  }

  /** list returns all conversations, the latest first. */
  async list() {
    const all = this.#db ? await done(this.#db.transaction(table).objectStore(table).getAll()) : [...this.#memory.values()];
    return all.sort((a, b) => b.updated - a.updated);
  }

  /**
   * put keeps a conversation, and forgets the oldest where there are too many. It returns how many
   * it forgot, or throws where the conversation is too large or the browser has no room.
   */
  async put(conversation) {
    const copy = structuredClone(conversation);
    if (JSON.stringify(copy).length > largest) throw new Error("The conversation is too long to be kept: begin a new one.");
    if (!this.#db) {
      this.#memory.set(copy.id, copy);
      return 0;
    }
    await this.#change(copy.id, copy, (all) => all.put(copy));
    const old = (await this.list()).slice(most);
    for (const c of old) await this.remove(c.id);
    return old.length;
  }

  async remove(id) {
    if (this.#db) await this.#change(id, null, (all) => all.delete(id));
    else this.#memory.delete(id);
  }

  // change makes a change to an id. now is its conversation afterwards, or null if it is removed.
  async #change(id, now, change) {
    this.#unsure.set(id, now);
    try {
      const transaction = this.#db.transaction(table, "readwrite");
      change(transaction.objectStore(table));
      await new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error); // also for want of room
      });
      forget(id); // if this page was left and has come back
    } finally {
      if (this.#unsure.get(id) === now) this.#unsure.delete(id);
    }
  }
}

// forget drops what pages have left unconfirmed of an id.
function forget(id) {
  const { [id]: left, ...others } = settings.get(unsettled, {});
  if (left !== undefined) settings.set(unsettled, others);
}

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("blocked"));
  });
}

/** settings are a few small values that outlive the page: the theme, and what new chats begin with. */
export const settings = {
  get(name, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(name)) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(name, JSON.stringify(value));
    } catch { /* it holds for this page */ }
  },
};
