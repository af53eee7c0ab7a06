import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'
import { startMail } from '../../support/service/messages/mail.ts'
import { assertAlerts, valueOf } from '../../support/service/trouble/alerts.ts'
import { compare } from '../../support/service/trouble/compare.ts'
import { makeAtServer } from '../../support/service/trouble/make-server.ts'
import { metricsOf, openPlace, operator, promtoolProgram, skipTrouble } from '../../support/service/trouble/place.ts'
import { troubles } from '../../support/service/trouble/trouble.ts'

// A server reads them when it starts.
before(() => buildPages())

test('whatever goes wrong at a server: command line, console, overview, metrics and alerts say the same of it', {
  skip: skipTrouble,
}, async () => {
  await using mail = await startMail()
  await using cluster = await openCluster('postgres', {
    processes: 2,
    env: {
      ONCEONLY_SMTP_URL: mail.url,
      ONCEONLY_SEND_TIMEOUT_MS: '60000',
      ONCEONLY_RETAIN_CHAT_MESSAGES: '1',
      ONCEONLY_SWEEP_EVERY_MS: '1000',
    },
  })
  const [one, two] = cluster.servers as [TestServer, TestServer]
  await using place = await openPlace({
    store: cluster.address,
    url: one.url,
    token: operator,
    // A retry that came too early came to the other process.
    metrics: () => Promise.all([one, two].map(metricsOf)),
  })
  await compare(promtoolProgram, 'server', place, await makeAtServer({ cluster, mail }))

  // The last one: without its store nothing else can be asked.
  const { metric, alert, page, sees } = troubles.server.lostStore
  await place.pages.see(page, 'Records by state')
  const reconnect = await cluster.cutOff()
  await until(
    'the gauge says so',
    async () => valueOf(await metricsOf(one), metric),
    (up) => up === 0,
  )
  await place.pages.see(null, sees)
  const doctor = await place.commands.run('doctor')
  assert.deepEqual([doctor.status, /cannot be reached/.test(doctor.stderr)], [2, true], doctor.stderr)
  await reconnect()
  assertAlerts(promtoolProgram, [{ series: metric, value: 0, alert, lasts: false }])
})
