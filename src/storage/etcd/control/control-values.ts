/**
 * The forms of the values of control keys, by which a value of ours is told from that of another
 * program. Each names the replica that wrote it: an elected replica's key is that name and its
 * settings, as text; every other value is a JSON object with the name in the member `replica`. All
 * versions keep to this, and to the members that are required here (docs/explanation/versions.md).
 */
import { isUtf8 } from 'node:buffer'
import { isObject, type Json, type JsonObject, memberOf, textOf } from '../../../lib/json.ts'
import { type ControlKind, controlKind } from '../keys.ts'

const replicaForm = /^[^\s/]*\/\d+$/
const leaderForm = /^[^\s/]*\/\d+( .*)?$/

/** The name of a replica, as it is in control keys. */
export function replicaName(host: string, processId: number): string {
  return `${host.replace(/[\s/]/g, '-')}/${processId}`
}

/** What is required of each value beside the name of its writer. */
const recordForms: Readonly<Record<ControlKind, ((record: JsonObject) => boolean) | 'leader'>> = {
  sweeper: 'leader',
  archiver: 'leader',
  'mirror-leaders': 'leader',
  compaction: (record) => typeof memberOf(record, 'compactedRevision') === 'number',
  ages: (record) => Array.isArray(memberOf(record, 'notes')),
  account: (record) => typeof memberOf(record, 'policy') === 'string',
  archive: (record) => isObject(memberOf(record, 'manifest')),
  mirrors: (record) => isObject(memberOf(record, 'positions')),
}

/** Whether a control key of this name, known or not, may have this value. */
export function isControlValue(name: string, value: Buffer): boolean {
  if (!isUtf8(value)) return false
  const text = value.toString()
  const kind = controlKind(name)
  const form = kind && recordForms[kind]
  if (form === 'leader') return leaderForm.test(text)
  const record = recordIn(text)
  if (form === undefined) return record !== undefined || leaderForm.test(text)
  return record !== undefined && form(record)
}

/** The record of a replica; undefined when it is not one. */
function recordIn(text: string): JsonObject | undefined {
  const tree = parsed(text)
  if (!isObject(tree)) return undefined
  return replicaForm.test(textOf(tree, 'replica')) ? tree : undefined
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
