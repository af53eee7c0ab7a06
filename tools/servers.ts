import { once } from 'node:events'
import { withServers } from './tests/servers.ts'

await withServers(['postgres'], async () => {
  for (const [name, value] of Object.entries(process.env)) {
    if (name.startsWith('ONCEONLY_TEST_')) console.log(`export ${name}=${value}`)
  }
  console.error('Running until interrupted.')
  // A signal listener alone keeps no process alive, so a timer does.
  const alive = setInterval(() => {}, 60_000)
  await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
  clearInterval(alive)
})
