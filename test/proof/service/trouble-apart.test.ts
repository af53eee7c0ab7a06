import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../support/gateway/process.ts'
import { openApart } from '../../support/service/trouble/apart.ts'
import { compare } from '../../support/service/trouble/compare.ts'
import { openLibrary } from '../../support/service/trouble/library.ts'
import { metricsOf, openPlace, operator, promtoolProgram, skipTrouble } from '../../support/service/trouble/place.ts'

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
})

test('what a process of the library leaves behind shows on every interface', options, async (context) => {
  const file = join(await temporaryFolder(context), 'library.db')
  await using library = await openLibrary(file, operator)
  await using place = await openPlace({ store: file, url: library.url, token: operator, metrics: library.metrics })
  await compare(promtoolProgram, 'library', place, library.made)
})
