import {
  type DocumentOptions,
  type ParseOptions,
  parseAllDocuments,
  type SchemaOptions,
} from 'yaml'
import type { Json } from '../json.ts'

/** The text is not YAML, or not supported YAML. The message is for the author of the text. */
export class YamlSyntaxError extends Error {
  override readonly name = 'YamlSyntaxError'
}

export interface YamlDocument {
  /** Position in the file, counted from 1 and including empty documents. */
  readonly number: number
  readonly value: Json
}

/** How often a document may use an anchor: more than any real policy file needs. */
const ALIASES_MAX = 100

/** Allows only decimal numbers: `0x10` and `0o17` are strings. */
const OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  prettyErrors: false,
  logLevel: 'silent',
  customTags: (tags) =>
    tags.filter((tag) => typeof tag === 'string' || !['HEX', 'OCT'].includes(tag.format ?? '')),
}

/**
 * Parses the YAML or JSON documents of an operator's file, without empty ones. The size limits of
 * request bodies do not apply here. Yields one document at a time, so that a caller that reads many
 * can yield to the event loop in between. Throws a YamlSyntaxError that names the document and the
 * line but quotes nothing, since such a file may contain secrets.
 */
export function* yamlDocuments(text: string): Generator<YamlDocument> {
  let line = 1
  let number = 0
  // In the first column `---` is always a marker, even inside a text block.
  for (const part of text.replace(/^\ufeff/, '').split(/^(?=---(?:\s|$))/m)) {
    for (const document of parseAllDocuments(part, OPTIONS)) {
      number++
      const [error] = document.errors
      if (error !== undefined) {
        const at = line + lineBreaks(part.slice(0, error.pos[0]))
        const why = error.code.toLowerCase().replaceAll('_', ' ')
        throw new YamlSyntaxError(`document ${number}: line ${at}: not YAML (${why})`)
      }
      if (document.contents === null) continue
      const value = contentOf(() => document.toJS({ maxAliasCount: ALIASES_MAX }), number)
      if (value !== null) yield { number, value }
    }
    line += lineBreaks(part)
  }
}

function contentOf(read: () => Json, number: number): Json {
  try {
    return read()
  } catch {
    throw new YamlSyntaxError(`document ${number}: an undefined alias, or too many aliases`)
  }
}

function lineBreaks(text: string): number {
  return text.split('\n').length - 1
}
