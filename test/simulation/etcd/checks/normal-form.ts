/** Replies and watch messages as text in which those of two etcds can be compared. */
import { Reader } from '../../../../src/lib/protobuf.ts'
import type { CallReply } from '../contract.ts'
import { takeApart } from './messages.ts'

/** A reply as text, without what cannot agree: the member and its term; the time if asked for. */
export function normalForm(
  path: string,
  reply: CallReply,
  options: { readonly time: boolean } = { time: false },
): string {
  if (reply.code !== 0 || !('message' in reply)) return JSON.stringify(reply)
  const { header, rest } = takeApart(reply.message)
  return `revision ${header?.revision} ${contentForm(path, rest, options.time)}`
}

function contentForm(path: string, rest: Buffer, hasTime: boolean): string {
  if (path === 'Lease/LeaseTimeToLive') return timeToLiveForm(rest, hasTime)
  // Alarms come in no particular order.
  if (path === 'Maintenance/Alarm') return readable(rest).split('\\12').sort().join(' ')
  return readable(rest)
}

/** The keys come in no particular order, and the remaining time differs. */
function timeToLiveForm(rest: Buffer, hasTime: boolean): string {
  const reader = new Reader(rest)
  const keys: string[] = []
  const numbers = new Map<number, bigint>()
  while (reader.next()) {
    if (reader.wireType === 2) keys.push(readable(reader.bytes()))
    else numbers.set(reader.field, reader.bigint())
  }
  const ttl = numbers.get(3) ?? 0n
  const time = hasTime ? `ttl ${ttl}` : `gone ${ttl < 0n}`
  return `id ${numbers.get(2)} ${time} granted ${numbers.get(4)} keys ${keys.sort().join()}`
}

/** Watchers of one stream get a revision in no particular order. */
export function watchForms(messages: readonly Buffer[]): readonly string[] {
  const forms: string[] = []
  let group: string[] = []
  let groupRevision = -1
  const endGroup = () => {
    forms.push(...group.sort())
    group = []
  }
  for (const response of messages) {
    const { header, rest } = takeApart(response)
    const revision = header?.revision ?? 0
    if (revision !== groupRevision) endGroup()
    groupRevision = revision
    group.push(`revision ${revision} ${readable(rest)}`)
  }
  endGroup()
  return forms
}

function readable(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[^ -~]/g, (char) => {
    return `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
}
