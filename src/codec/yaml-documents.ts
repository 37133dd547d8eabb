import { parseAllDocuments } from 'yaml'
import type { Json } from '../lib/json.ts'
import { YamlSyntaxError } from './yaml-nodes.ts'

/** One document of a file. */
export interface YamlDocument {
  /** In the file, counted from 1, documents without content included. */
  readonly number: number
  readonly value: Json
}

/** A document may use its anchors this often; more is no way to write a policy. */
const ALIASES_MAX = 100

/**
 * The documents of a file that an operator wrote, YAML or JSON; those without content are left out.
 * The bounds of bodies do not hold here. One at a time, so that whoever reads many can let others
 * have a turn in between. Throws a YamlSyntaxError that names document and line, and quotes nothing:
 * such a file may hold secrets.
 */
export function* yamlDocuments(text: string): Generator<YamlDocument> {
  let line = 1
  let number = 0
  // In the first column this is a marker whatever stands around it, texts included.
  for (const part of text.replace(/^\ufeff/, '').split(/^(?=---(?:\s|$))/m)) {
    for (const document of parseAllDocuments(part, { prettyErrors: false, logLevel: 'silent' })) {
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
    throw new YamlSyntaxError(`document ${number}: an alias of nothing, or far too many of them`)
  }
}

function lineBreaks(text: string): number {
  return text.split('\n').length - 1
}
