/** How answers that are not watches are written: one event, or a list piece by piece. */
import type { JsonObject } from '../lib/json.ts'
import type { ShownEvent } from './event-bytes.ts'
import type { EventShape, ListMeta } from './event-shapes.ts'
import { indentJson } from './json-form.ts'
import type { Representation } from './representation.ts'
import type { Room } from './room.ts'
import { yamlOf } from './yaml.ts'

/** Lives as long as the program. */
export interface AnswerForm {
  readonly contentType: string
  /** The head tells how long the entries are, so that they have to be counted first. */
  readonly isMeasured?: true
  one(event: ShownEvent): Buffer | string
  /** What comes before the entries of a list, which have so many bytes. */
  listHead(meta: ListMeta, entriesBytes: number): Buffer | string
  /**
   * As many entries as are written at once in a long list: what it takes to print them must not keep
   * others waiting.
   */
  readonly entriesAtOnce: number
  /**
   * Some entries, at least one. `index` is that of the first of them in the whole list. Given a room
   * they may be in it, and are then good for as long as it says.
   */
  listEntries(events: readonly ShownEvent[], index: number, room?: Room): Buffer | string
  /** Set when the same events make the same entries at any time. */
  readonly lasting?: LastingEntries
  /** What comes after `count` entries in all. */
  listTail(meta: ListMeta, count: number): Buffer | string
}

/** Entries that are the same anywhere in a list, but at its start. */
export interface LastingEntries {
  /** As `listEntries` writes them. */
  write(events: readonly ShownEvent[], room?: Room): Buffer
  /** At the start of a list this stands in place of as many bytes. In ASCII. */
  readonly start: string
}

export function answerForm(shape: EventShape, wanted: Representation): AnswerForm {
  if (wanted.mediaType === 'application/yaml') return yamlForm(shape)
  return wanted.isPretty ? prettyForm(shape) : compactForm(shape)
}

function compactForm(shape: EventShape): AnswerForm {
  return {
    contentType: 'application/json',
    one: shape.writer({ before: '', after: '\n' }),
    listHead: (meta) => shape.listStart(meta),
    entriesAtOnce: 500,
    listEntries: (events, index, room) => shape.entries(events, index === 0 ? '[' : ',', room),
    ...(shape.isLasting && {
      lasting: { write: (events, room) => shape.entries(events, ',', room), start: '[' },
    }),
    listTail: (_meta, count) => (count === 0 ? `${shape.emptyList}}\n` : ']}\n'),
  }
}

/** Indented as a whole would be: entries of a list are two levels down. */
function prettyForm(shape: EventShape): AnswerForm {
  const write = shape.writer()
  const emptyEnd = `${shape.emptyList}\n}`
  return {
    contentType: 'application/json',
    one: (event) => indentJson(write(event).toString()),
    listHead: (meta) =>
      indentJson(`${shape.listStart(meta)}${shape.emptyList}}`).slice(0, -emptyEnd.length),
    entriesAtOnce: 100,
    listEntries: (events, index) =>
      events
        .map((event, offset) => {
          const entry = indentJson(shape.entries([event], '').toString())
          const start = index + offset === 0 ? '[' : ','
          return `${start}\n    ${entry.replaceAll('\n', '\n    ')}`
        })
        .join(''),
    listTail: (_meta, count) => (count === 0 ? emptyEnd : '\n  ]\n}'),
  }
}

/** Members of an object go in the order of their names, so a list's own stand on both sides of its entries. */
function yamlForm(shape: EventShape): AnswerForm {
  const { listName, emptyList } = shape
  const write = shape.writer()
  return {
    contentType: 'application/yaml',
    one: (event) => yamlOf(JSON.parse(write(event).toString())),
    listHead: (meta) => yamlMembers(listTree(shape, meta), (name) => name < listName),
    entriesAtOnce: 50,
    listEntries: (events, index) => {
      const entries = yamlOf(JSON.parse(`[${shape.entries(events, '')}]`))
      return index === 0 ? `${listName}:\n${entries}` : entries
    },
    listTail: (meta, count) => {
      const rest = yamlMembers(listTree(shape, meta), (name) => name > listName)
      return count === 0 ? `${listName}: ${emptyList}\n${rest}` : rest
    },
  }
}

/** A list without entries. */
function listTree(shape: EventShape, meta: ListMeta): JsonObject {
  return JSON.parse(`${shape.listStart(meta)}null}`)
}

function yamlMembers(tree: JsonObject, isWanted: (name: string) => boolean): string {
  const members = Object.entries(tree).filter(([name]) => isWanted(name))
  return members.length === 0 ? '' : yamlOf(Object.fromEntries(members))
}
