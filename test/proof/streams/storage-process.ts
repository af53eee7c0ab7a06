import { isOnceError } from 'onceonly'
import { createStreamClient } from 'onceonly/stream'
import { createFileStorage } from 'onceonly/stream/server'

/** A client without a network, as a process of its own: sends until it is killed, and says what was kept. */

const [path = '', name = ''] = process.argv.slice(2)

try {
  const client = await createStreamClient({
    room: 'room',
    regions: ['eu'],
    transport: { connect: () => ({ send() {}, close() {} }) },
    mode: 'at-least-once',
    receiver: { message() {} },
    storage: createFileStorage({ path }),
  })
  console.log('holds')
  for (let number = 1; ; number++) {
    await client.send(`${name} ${number}`)
    console.log(`kept ${name} ${number}`)
  }
} catch (error) {
  console.log(isOnceError(error, 'storage_taken') ? `taken ${String(error.details['pid'])}` : String(error))
}
