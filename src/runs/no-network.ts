import { AsyncLocalStorage } from 'node:async_hooks'
import dgram from 'node:dgram'
import net from 'node:net'

/**
 * A replay must perform nothing. Its context has nothing to act with; and whatever the code between its steps tries to
 * reach over the network is refused here and counted: new connections, writes on pooled ones, `fetch`, datagrams.
 *
 * Whatever a replay leaves behind, because it was stuck, took too long or awaited nothing, is refused for as long as it
 * lives: what is patched stays so, from the first replay on. For all other code that is one check of its context.
 *
 * This is a net under careful code, not a prison: it sees what is called in the asynchronous context of the replay. A
 * library that hands work to a thread, a child process or a queue of its own escapes it.
 */
export interface Refusals {
  readonly refused: readonly string[]
}

interface Watched {
  readonly refused: string[]
}

/** An endless loop must not fill the memory of the replay. */
const MOST_REFUSALS = 1_000

const inside = new AsyncLocalStorage<Watched>()
/** Our own checks, so that they are not stacked; a mock of `fetch` may remove one again. */
const checks = new WeakSet<object>()

class NetworkRefused extends Error {
  constructor(what: string) {
    super(`A replay performs nothing: ${what} was refused.`)
    this.name = 'NetworkRefused'
  }
}

export async function withoutNetwork<T>(work: () => Promise<T>): Promise<{ readonly value: T } & Refusals> {
  const watched: Watched = { refused: [] }
  patchAll()
  const value = await inside.run(watched, work)
  return { value, refused: [...watched.refused] }
}

function patchAll(): void {
  patch(net.Socket.prototype, 'connect', 'a connection', cut)
  patch(net.Socket.prototype, 'write', 'a write on an open connection', cut)
  patch(net.Socket.prototype, 'end', 'a write on an open connection', cut)
  patch(dgram.Socket.prototype, 'send', 'a datagram', fail)
  patch(dgram.Socket.prototype, 'connect', 'a datagram', fail)
  patch(globalThis, 'fetch', 'fetch', (_self, error) => Promise.reject(error))
}

/** A stream reports by an event: the writer may be a timer or a tick whose exception could not be caught. */
function cut(socket: unknown, error: Error): unknown {
  return (socket as net.Socket).destroy(error)
}

/** With a pipe behind them, they are sockets like any other; but printing is not an effect. */
function isOwnOutput(self: unknown): boolean {
  return self === process.stdout || self === process.stderr
}

function fail(_self: unknown, error: Error): never {
  throw error
}

/** Puts a check before a method; outside of replays it is as if it were not there. */
function patch<T extends object, K extends keyof T & string>(
  target: T,
  name: K,
  what: string,
  refuse: (self: unknown, error: Error) => unknown,
): void {
  if (checks.has(target[name] as object)) return
  const original = target[name] as unknown as (...args: unknown[]) => unknown
  function checked(this: unknown, ...args: unknown[]): unknown {
    const watched = inside.getStore()
    if (watched === undefined || isOwnOutput(this)) return original.apply(this, args)
    if (watched.refused.length < MOST_REFUSALS) watched.refused.push(what)
    return refuse(this, new NetworkRefused(what))
  }
  checks.add(checked)
  Object.defineProperty(target, name, { value: checked, configurable: true, writable: true })
}
