import { join } from 'node:path'
import { before, test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { guarded, openCounting, things } from '../../support/gateway/world.ts'
import { compare } from '../../support/service/trouble/compare.ts'
import { makeAtGateway } from '../../support/service/trouble/make-gateway.ts'
import { getText, openPlace, operator, promtoolProgram, skipTrouble } from '../../support/service/trouble/place.ts'

before(() => buildPages())

/** They hang for as long as the test takes. */
const timeouts = { answerMs: 600_000 }

test('whatever goes wrong behind a gateway: its command line, console, overview, metrics and alerts say the same of it', {
  skip: skipTrouble,
}, async (context) => {
  const folder = await temporaryFolder(context)
  const held: string[] = []
  const upstream = await openCounting(context, (request, response, { url }) => {
    if (url === '/cut') request.socket.destroy()
    else if (url === '/slow' || url === '/same') held.push(url)
    else response.writeHead(201).end('paid')
  })
  const store = join(folder, 'gateway.db')
  const gateway = await startGateway(context, folder, {
    store,
    config: {
      upstream: upstream.url,
      routes: [
        ...['cut', 'pay'].map((operation) => ({ ...things, path: `/${operation}`, operation })),
        { ...things, path: '/slow', operation: 'slow', whileRunning: 'conflict', timeouts },
        { ...guarded, path: '/same', operation: 'same', timeouts },
      ],
      console: { port: 0, operatorToken: operator },
    },
  })
  const url = await until('the gateway prints where its console is', () =>
    gateway.lines
      .map((line) => /^Its console is (http:\S+)\/console/.exec(line)?.[1])
      .find((each) => each !== undefined),
  )
  await using place = await openPlace({
    store,
    url,
    token: operator,
    metrics: async () => [await getText(`http://127.0.0.1:${gateway.port}/.onceonly/metrics`, operator)],
  })
  await compare(promtoolProgram, 'gateway', place, await makeAtGateway({ ...gateway, held }))
})
