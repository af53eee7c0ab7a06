import { holdStorage, listIndexedDbStorages, type StorageHold } from 'onceonly/stream/browser'
import { newId } from './ids.ts'

/** The owner of the databases of this browser: another key must not send what this one left behind. */
export interface Scope {
  readonly workspace: string
  readonly caller: string
}

/** The person and the tab that keep something in this browser: one database each. */
export interface KeptPerson extends Scope {
  readonly tab: string
  readonly room: string
  readonly name: string
}

/** The right to the databases of one tab, this one or one that was closed. */
export interface Tab {
  readonly id: string
  release(): Promise<void>
}

const key = 'onceonly-chat-tab'
const prefix = 'chat'
/** A tab that is reloaded gives its databases back a moment after the new page begins. */
const reloadMs = 500

export function storageNameOf({ workspace, caller, tab, room, name }: KeptPerson): string {
  return [prefix, ...[workspace, caller, tab, room, name].map(encodeURIComponent)].join('/')
}

/** All people of this key with data in this browser, whether a tab is open for them or not. */
export async function keptPeople({ workspace, caller }: Scope): Promise<readonly KeptPerson[]> {
  const names = await listIndexedDbStorages()
  return names.flatMap((storageName) => {
    const person = personOf(storageName)
    return person !== null && person.workspace === workspace && person.caller === caller ? [person] : []
  })
}

export function personOf(storageName: string): KeptPerson | null {
  const [kind, ...parts] = storageName.split('/')
  if (kind !== prefix || parts.length !== 5) return null
  try {
    const [workspace = '', caller = '', tab = '', room = '', name = ''] = parts.map(decodeURIComponent)
    return { workspace, caller, tab, room, name }
  } catch {
    return null
  }
}

/** Null while another tab has them. */
export async function holdTab(id: string, options: { waitMs?: number; onLost?: () => void } = {}): Promise<Tab | null> {
  const hold: StorageHold | null = await holdStorage(`${prefix}/${id}`, options)
  return hold === null ? null : { id, release: () => hold.release() }
}

/**
 * The databases of this tab. A reload finds its own again. A new tab continues with those of a closed one in which one of
 * these people sat in this room: with what they had seen, and what they had not sent. A duplicated tab, which inherits
 * the name of its twin, notices that, and gets new ones.
 */
export async function takeTab(scope: Scope, room: string, names: readonly string[], onLost: () => void): Promise<Tab> {
  const inherited = sessionStorage.getItem(key)
  const tab =
    inherited === null
      ? await closedTab(scope, room, names, onLost)
      : await holdTab(inherited, { waitMs: reloadMs, onLost })
  if (tab === null) return newTab(onLost)
  sessionStorage.setItem(key, tab.id)
  return tab
}

export async function newTab(onLost: () => void): Promise<Tab> {
  const id = newId()
  sessionStorage.setItem(key, id)
  const tab = await holdTab(id, { onLost })
  if (tab === null) throw new Error('The browser does not let this window keep anything.')
  return tab
}

async function closedTab(
  scope: Scope,
  room: string,
  names: readonly string[],
  onLost: () => void,
): Promise<Tab | null> {
  const people = (await keptPeople(scope)).filter((each) => each.room === room && names.includes(each.name))
  for (const id of new Set(people.map(({ tab }) => tab))) {
    const tab = await holdTab(id, { onLost })
    if (tab !== null) return tab
  }
  return null
}
