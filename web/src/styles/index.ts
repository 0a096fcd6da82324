/** The styles of the page, in the order in which later ones may refine earlier ones. */

import "./base.css";
import "./frame.css";
import "./settings.css";
import "./results.css";
import "./packets.css";
import "./systems.css";
import "./print.css";
