import { createClient } from 'onceonly/client'
import { openFileKeys } from 'onceonly/client-file'

/** A process that sends one order under an intent, and says what came of it. It is killed in the middle by its test. */
const [url = '', folder = ''] = process.argv.slice(2)
const client = createClient({ keys: await openFileKeys({ folder }) })
const { response, replayed, key } = await client.send(`${url}/orders`, {
  method: 'POST',
  intent: 'order-17',
  headers: { 'content-type': 'application/json' },
  body: '{"item":"tea"}',
})
console.log(JSON.stringify({ status: response.status, body: await response.json(), replayed, key }))
