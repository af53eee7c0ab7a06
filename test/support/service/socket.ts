import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** What a server said on one connection, from its first byte to its last. */
export interface Said {
  readonly text: string
  /** Of every answer, in order. */
  readonly statuses: readonly number[]
  /** The fields that the last answer complains about. */
  readonly fields: readonly string[]
}

export interface Speech {
  /** Written as they are, one after the other. */
  readonly pieces: readonly (string | Uint8Array)[]
  readonly pauseMs?: number
  /** Says that nothing more follows, but still listens. */
  readonly halfClose?: boolean
}

/** Longer than any limit of the server under test, on any machine: a connection that is still open then is a finding. */
const LONGEST_MS = 120_000

/** Writes raw bytes to a server, without a client library, until the server closes the connection. */
export async function speak(url: string, { pieces, pauseMs = 0, halfClose = false }: Speech): Promise<Said> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  // A server that has answered and closed may reset the rest of the input; its response was received.
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  socket.on('end', () => socket.end())
  let leftOpen = false
  const tooLong = setTimeout(() => {
    leftOpen = true
    socket.destroy()
  }, LONGEST_MS)
  for (const piece of pieces) {
    if (!socket.writable) break
    socket.write(piece)
    if (pauseMs > 0) await sleep(pauseMs)
  }
  if (halfClose) socket.end()
  await closed
  clearTimeout(tooLong)
  if (leftOpen) throw new Error(`The server left the connection open after it had said:\n${text}`)
  return { text, statuses: statusesOf(text), fields: fieldsOf(text) }
}

function statusesOf(text: string): number[] {
  return [...text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status))
}

function fieldsOf(text: string): string[] {
  const body = text.split('\r\n\r\n').at(-1) ?? ''
  const { errors = [] } = (body.startsWith('{') ? JSON.parse(body) : {}) as { errors?: { field: string }[] }
  return errors.map(({ field }) => field)
}
