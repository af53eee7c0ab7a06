import assert from 'node:assert/strict'
import { migrations as importTables } from '../../../../service/imports/schema.ts'
import { migrations as messageTables } from '../../../../service/messages/schema.ts'
import { onEveryPlace, sqlStore } from '../../../support/place.ts'

const before = <T extends { readonly version: number }>(all: readonly T[], version: number) =>
  all.filter((each) => each.version < version)

onEveryPlace('what was kept before there were quotas counts as well', async (place) => {
  const { sql } = sqlStore(place.store)
  await sql.migrate('messages', before(messageTables, 2))
  await sql.migrate('imports', before(importTables, 2))
  for (const [workspace, ids] of [
    ['a', ['1', '2', '3']],
    ['b', ['4']],
  ] as const) {
    await sql.query('insert into leads (id, workspace_id, created_at) values (?, ?, 1)', [`l${workspace}`, workspace])
    await sql.query('insert into conversations (id, workspace_id, lead_id, created_at) values (?, ?, ?, 1)', [
      `c${workspace}`,
      workspace,
      `l${workspace}`,
    ])
    for (const id of ids) {
      await sql.query(
        `insert into messages (id, workspace_id, lead_id, conversation_id, body, channel, attachments, status, new_lead,
           effect_key, lock_hash, created_at, status_at)
         values (?, ?, ?, ?, 'äöü', 'local', ?, 'sent', 0, ?, 'h', 1, 1)`,
        [id, workspace, `l${workspace}`, `c${workspace}`, id === '1' ? '[]' : null, id],
      )
    }
    await sql.query(
      `insert into import_searches (search_id, workspace_id, project_id, search_name, created_at) values (?, ?, 'p', 's', 1)`,
      [`s${workspace}`, workspace],
    )
  }
  await sql.query(
    `insert into import_uploads (search_id, name, position, bytes) values ('sa', 'x', 0, 1000), ('sa', 'y', 1, null)`,
  )
  await sql.query(`insert into import_projects (workspace_id, project_id, document) values ('b', 'p', '{}')`)

  await sql.migrate('messages', messageTables)
  await sql.migrate('imports', importTables)
  const used = async () =>
    (
      await sql.query<{ workspace_id: string; quota: string; used: unknown }>(
        `select workspace_id, quota, sum(used) as used from workspace_usage
         group by workspace_id, quota having sum(used) <> 0 order by workspace_id, quota`,
      )
    ).map((row) => `${row.workspace_id} ${row.quota} ${Number(row.used)}`)
  const counted = ['a imports 1', 'a message-bytes 20', 'a messages 3', 'a upload-bytes 1000']
  const others = ['b imports 1', 'b message-bytes 6', 'b messages 1', 'b project-bytes 2']
  assert.deepEqual(new Set(await used()), new Set([...counted, ...others]))

  // And goes, however it is removed.
  await sql.query('delete from messages')
  await sql.query('delete from import_uploads')
  await sql.query('delete from import_searches')
  await sql.query('delete from import_projects')
  assert.deepEqual(await used(), [])
})
