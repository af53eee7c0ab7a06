import assert from 'node:assert/strict'
import { migrations } from '../../../../service/imports/schema.ts'
import { insertSearch, markReceived, markSaved } from '../../../../service/imports/searches.ts'
import { onEveryPlace, sqlStore } from '../../../support/place.ts'

onEveryPlace('a set of files is complete once, whatever notifications come later', async (place) => {
  const { sql } = sqlStore(place.store)
  await sql.migrate('imports', migrations)
  const search = { workspaceId: 'demo', projectId: 'p', searchName: 's', referenceFiles: ['a.ris', 'b.ris'] }
  await insertSearch(sql, { searchId: 's', ...search, createdAt: 1 })
  const completions: boolean[] = []
  for (const name of ['a.ris', 'a.ris', 'b.ris', 'b.ris', 'a.ris']) {
    await markReceived(sql, 's', name, 2)
    completions.push(await markSaved(sql, 's', 2))
  }
  assert.deepEqual(completions, [false, false, true, false, false])
})
