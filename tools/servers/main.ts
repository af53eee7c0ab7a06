import { once } from 'node:events'
import { SERVER_KINDS, type ServerKind, startServers } from './index.ts'

/** `npm run servers [kinds…]`: the servers of the tests, to work with by hand, until Ctrl-C. */

const names = process.argv.slice(2)
const unknown = names.filter((name) => !isServerKind(name))
if (unknown.length > 0) {
  process.stderr.write(`Unknown server: ${unknown.join(', ')}. Known are ${SERVER_KINDS.join(', ')}.\n`)
  process.exit(2)
}

// Waiting for these signals keeps no process alive, so a timer does.
const interrupted = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), once(process, 'SIGHUP')])
const servers = await startServers(names.length > 0 ? names.filter(isServerKind) : SERVER_KINDS)
// Only these lines go to standard output, so that a shell can read them from a file or a pipe.
for (const [variable, url] of Object.entries(servers.env)) process.stdout.write(`export ${variable}='${url}'\n`)
process.stderr.write('Ctrl-C stops them.\n')

const alive = setInterval(() => {}, 60_000)
await interrupted
clearInterval(alive)
await servers.stop()

function isServerKind(name: string): name is ServerKind {
  return SERVER_KINDS.some((kind) => kind === name)
}
