/** Encodes responses other than watches: one event, or a list in chunks. */
import type { JsonObject } from '../../lib/json.ts'
import type { ShownEvent } from '../event/event-bytes.ts'
import type { Representation } from '../representation.ts'
import { yamlOf } from '../yaml/yaml.ts'
import type { EventShape, ListMeta } from './event-shapes.ts'
import { indentJson } from './json-indent.ts'
import type { ScratchBuffer } from './scratch-buffer.ts'

/** Lives as long as the process, so it can be used as a cache key. */
export interface ResponseEncoder {
  readonly contentType: string
  /**
   * The head contains the length of all entries, so they have to be encoded once to measure them.
   */
  readonly isLengthPrefixed?: true
  one(event: ShownEvent): Buffer | string
  /** The bytes before the entries of a list; `entriesBytes` is the length of all entries. */
  listHead(meta: ListMeta, entriesBytes: number): Buffer | string
  /**
   * The number of entries that are encoded per chunk of a long list. Encoding a chunk must not
   * block the event loop for long.
   */
  readonly entriesPerChunk: number
  /** The same for the stored bytes of the entries; undefined for encodings that mostly copy. */
  readonly bytesPerChunk?: number
  /**
   * Encodes at least one entry. `index` is the position of the first one in the whole list. With a
   * scratch buffer the result may be a view of it, which is valid until the next write to that
   * buffer.
   */
  listEntries(
    events: readonly ShownEvent[],
    index: number,
    scratch?: ScratchBuffer,
  ): Buffer | string
  /** Set when the encoding of an event does not depend on the time, so that it can be cached. */
  readonly cacheable?: CacheableEntries
  /** The bytes after the last entry; `count` is the number of all entries. */
  listTail(meta: ListMeta, count: number): Buffer | string
}

/**
 * Entries whose encoding is the same at any position in a list, except for the first bytes of the
 * list.
 */
export interface CacheableEntries {
  /** Encodes them as `listEntries` does. */
  write(events: readonly ShownEvent[], scratch?: ScratchBuffer): Buffer
  /** At the start of a list, this ASCII text replaces as many bytes of the result. */
  readonly start: string
}

export function responseEncoder(shape: EventShape, wanted: Representation): ResponseEncoder {
  if (wanted.mediaType === 'application/yaml') return yamlEncoder(shape)
  return wanted.isPretty ? prettyEncoder(shape) : compactEncoder(shape)
}

function compactEncoder(shape: EventShape): ResponseEncoder {
  return {
    contentType: 'application/json',
    one: shape.writer({ before: '', after: '\n' }),
    listHead: (meta) => shape.listStart(meta),
    entriesPerChunk: 500,
    listEntries: (events, index, scratch) =>
      shape.entries(events, index === 0 ? '[' : ',', scratch),
    ...(shape.isCacheable && {
      cacheable: { write: (events, scratch) => shape.entries(events, ',', scratch), start: '[' },
    }),
    listTail: (_meta, count) => (count === 0 ? `${shape.emptyList}}\n` : ']}\n'),
  }
}

/** Indents each entry as in the whole document: entries of a list are two levels deep. */
function prettyEncoder(shape: EventShape): ResponseEncoder {
  const write = shape.writer()
  const emptyEnd = `${shape.emptyList}\n}`
  return {
    contentType: 'application/json',
    one: (event) => indentJson(write(event).toString()),
    listHead: (meta) =>
      indentJson(`${shape.listStart(meta)}${shape.emptyList}}`).slice(0, -emptyEnd.length),
    entriesPerChunk: 100,
    bytesPerChunk: 64 * 1024,
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

/** YAML sorts members by name, so some members of a list come before its entries and some after. */
function yamlEncoder(shape: EventShape): ResponseEncoder {
  const { listName, emptyList } = shape
  const write = shape.writer()
  return {
    contentType: 'application/yaml',
    one: (event) => yamlOf(JSON.parse(write(event).toString())),
    listHead: (meta) => yamlMembers(listTree(shape, meta), (name) => name < listName),
    entriesPerChunk: 50,
    bytesPerChunk: 32 * 1024,
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
