import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import type { Mood } from '../outreach/keyed-provider.ts'

export interface Mail {
  readonly to: string
  /** The first line of the message. */
  readonly subject: string
  readonly messageId: string
  readonly raw: string
}

/** A real mail server. How it treats a mail depends on the name that it is sent to. */
export interface MailServer extends AsyncDisposable {
  readonly url: string
  /** When each was announced, also those that were refused. */
  readonly arrivals: readonly { readonly atMs: number }[]
  /** Every mail that arrived whole, whatever was answered. */
  readonly mails: readonly Mail[]
  sentTo(subject: string): readonly Mail[]
  /** Mails to `held@…` are answered only after this. */
  letGo(): void
}

/** Behaviours by the part before the `@`: `refused`, `later`, `lost`, `held`; every other address is served. */
export async function startMail(
  answerMs: () => number = () => 0,
  moodOf: () => Mood = () => 'answer',
): Promise<MailServer> {
  const mails: Mail[] = []
  const arrivals: { readonly atMs: number }[] = []
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    closeTimeout: 100,
    onRcptTo(address, _session, done) {
      arrivals.push({ atMs: performance.now() })
      const who = address.address.split('@')[0]
      if (who === 'refused') return done(Object.assign(new Error('No such person'), { responseCode: 550 }))
      const mood = moodOf()
      return done(
        who === 'later' || mood === 'refuse'
          ? Object.assign(new Error('Come back later'), { responseCode: 451 })
          : null,
      )
    },
    async onData(stream, session, done) {
      const raw = await text(stream).catch(() => '')
      const to = session.envelope.rcptTo[0]?.address ?? ''
      const [subject = '', messageId = ''] = ['subject', 'message-id'].map((name) => headerOf(raw, name))
      // A connection that broke in the middle of the content delivered nothing.
      if (!raw.includes('\r\n\r\n') || messageId === '') return done(new Error('The mail is not whole'))
      mails.push({ to, subject, messageId, raw })
      if (to.startsWith('held@')) await held
      const mood = moodOf()
      if (mood === 'hang') return undefined
      if (to.startsWith('lost@') || mood === 'lose') {
        for (const connection of server.connections) if (connection.session === session) connection.close()
        return undefined
      }
      await sleep(answerMs())
      return done()
    },
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    arrivals,
    mails,
    sentTo: (subject) => mails.filter((mail) => mail.subject === subject),
    letGo,
    async [Symbol.asyncDispose]() {
      letGo()
      await new Promise<void>((resolve) => server.close(resolve))
    },
  }
}

function headerOf(raw: string, name: string): string {
  return new RegExp(`^${name}: (.+)$`, 'im').exec(raw.split('\r\n\r\n', 1)[0] ?? '')?.[1]?.trim() ?? ''
}
