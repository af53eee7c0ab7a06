import { DBOS } from '@dbos-inc/dbos-sdk'
import { PostgresDataSource } from '@dbos-inc/postgres-datasource'
import express from 'express'
import type { Pool } from 'pg'

export async function createApp({ options: { connectionString = '' } }: Pool) {
  const { hostname: host, port, pathname, username, password } = new URL(connectionString)
  const database = { host, port: Number(port), database: pathname.slice(1), username, password }
  const data = new PostgresDataSource('app', database)
  const insert = data.registerTransaction(
    async (item: string) =>
      (await PostgresDataSource.client`insert into orders (item) values (${item}) returning id`)[0],
    { name: 'insert' },
  )
  const place = DBOS.registerWorkflow((item: string) => insert(item), { name: 'order.place' })
  await PostgresDataSource.initializeDBOSSchema(database)
  DBOS.setConfig({ name: 'shop', systemDatabaseUrl: connectionString, runAdminServer: false, logLevel: 'error' })
  await DBOS.launch()
  const app = express()
  app.use(express.json())
  app.post('/orders', async (req, res) => {
    const key = req.get('idempotency-key')
    if (key === undefined) return void res.status(400).json({ error: 'Idempotency-Key is missing' })
    const workflowID = `${req.get('x-user') ?? 'anonymous'}/${key}`
    const handle = await DBOS.startWorkflow(place, { workflowID })(req.body.item)
    res.status(201).json(await handle.getResult())
  })
  return app
}
