import { createServer } from 'node:net'

/** An address that was just free: nothing listens on it. */
export async function closedUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  const { port } = server.address() as { port: number }
  await new Promise((closed) => server.close(closed))
  return `http://127.0.0.1:${port}/`
}
