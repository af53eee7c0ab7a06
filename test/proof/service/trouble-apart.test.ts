import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { temporaryFolder } from '../../support/gateway/process.ts'
import { assertAlerts, valueOf } from '../../support/service/trouble/alerts.ts'
import { openApart } from '../../support/service/trouble/apart.ts'
import { compare } from '../../support/service/trouble/compare.ts'
import { openLibrary } from '../../support/service/trouble/library.ts'
import { metricsOf, openPlace, operator, promtoolProgram, skipTrouble } from '../../support/service/trouble/place.ts'
import { troubles } from '../../support/service/trouble/trouble.ts'

before(() => buildPages())

const options = { skip: skipTrouble }

test('a server without its locks and its broker says so on every interface', options, async () => {
  await using apart = await openApart()
  const { cluster, server, made } = apart
  await using place = await openPlace({
    store: cluster.address,
    url: server.url,
    token: operator,
    metrics: async () => [await metricsOf(server)],
  })
  await compare(promtoolProgram, 'apart', place, made)

  const { metric, alert, page, sees } = troubles.apart.lostClaimsStore
  const value = valueOf(await metricsOf(server), metric)
  assert.equal(value, 0)
  await place.pages.see(page, sees)
  assert.match(await place.console('/doctor'), /the store of the claims does not answer/)
  const doctor = await place.commands.run('doctor', '--store', apart.claims)
  assert.deepEqual([doctor.status, /cannot be reached/.test(doctor.stderr)], [2, true], doctor.stderr)
  assertAlerts(promtoolProgram, [{ series: metric, value, alert, lasts: false }])
})

test('what a process of the library leaves behind shows on every interface', options, async (context) => {
  const file = join(await temporaryFolder(context), 'library.db')
  await using library = await openLibrary(file, operator)
  await using place = await openPlace({ store: file, url: library.url, token: operator, metrics: library.metrics })
  await compare(promtoolProgram, 'library', place, library.made)
})
