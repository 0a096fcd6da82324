"""TCP RAPID (Yin, Kaur and Smith, INFOCOM 2017): its figures and tables."""
