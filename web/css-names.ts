/** The class names of CSS modules: the file and the local name, for example `Question_why`. */

import { basename } from 'node:path';

/** Stable and readable, so that tests can select an element and a person finds its rule. */
export const scopedName = (name: string, file: string) =>
  `${basename(file).replace(/\.module\.css.*$/, '')}_${name}`;

/** The option `css.modules` of Vite, for the build and for the tests. */
export const cssModules = { generateScopedName: scopedName };
